# SPDX-License-Identifier: Apache-2.0
"""`python -m smepilot` is the command `smepilot`."""

import sys

from smepilot.cli import main

sys.exit(main())
