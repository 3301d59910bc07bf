# SPDX-License-Identifier: Apache-2.0
"""`smepilot list`: the models on this machine, or all that can be pulled."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from smepilot.cli.render import megabytes, print_json, table

EXAMPLES = """\
  smepilot list            what is here
  smepilot list --all      what can be pulled as well"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares arguments and options."""
    parser.add_argument("--all", action="store_true", help="also list models that can be pulled")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Lists models."""
    from smepilot.models import Store

    store = Store()
    entries = store.available() if args.all else store.list()
    if args.json:
        print_json([asdict(entry) for entry in entries])
    elif entries:
        rows = [
            (entry.name, megabytes(entry.size), entry.quantisation or "", entry.licence, "yes" if entry.path else "no")
            for entry in entries
        ]
        table(("NAME", "SIZE", "TYPE", "LICENCE", "HERE"), rows)
    else:
        print("no models here yet; `smepilot list --all` shows what can be pulled", file=sys.stderr)
    return 0
