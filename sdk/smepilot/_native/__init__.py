# SPDX-License-Identifier: Apache-2.0
"""Floor 1: the native engine as Python sees it. Everything here is implemented in `_core`, the one extension."""

from smepilot._native._core import *  # noqa: F403
