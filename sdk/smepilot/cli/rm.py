# SPDX-License-Identifier: Apache-2.0
"""`smepilot rm`: removes models and what was derived from them."""

from __future__ import annotations

import argparse
import sys

EXAMPLES = """\
  smepilot rm smollm2:135m"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares arguments and options."""
    parser.add_argument("names", metavar="NAME", nargs="+", help="names of models on this machine")


def run(args: argparse.Namespace) -> int:
    """Removes the models, stopping at the first that is not here."""
    from smepilot.models import Store

    for name in args.names:
        Store().remove(name)
        print(f"removed {name}", file=sys.stderr)
    return 0
