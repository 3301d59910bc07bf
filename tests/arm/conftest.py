# SPDX-License-Identifier: Apache-2.0
"""Tests of what was built for Arm: they need builds and emulators, so only `make test-arm` collects them."""

import os

collect_ignore_glob = [] if os.environ.get("SMEPILOT_TEST_ARM") else ["*"]
