# SPDX-License-Identifier: Apache-2.0
"""`smepilot pull`: fetches a catalog model, verified, with a progress bar."""

from __future__ import annotations

import argparse
import sys

from smepilot.cli.render import Bar, megabytes, print_json

EXAMPLES = """\
  smepilot pull smollm2:135m
  SMEPILOT_HOME=/data/models smepilot pull smollm2:135m    keep models elsewhere"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares arguments and options."""
    parser.add_argument("name", metavar="NAME", help="a name of the catalog; `smepilot list --all` shows them")
    parser.add_argument("--json", action="store_true", help="print name and path as JSON")


def run(args: argparse.Namespace) -> int:
    """Fetches the model; does nothing, and needs no network, when it is here."""
    from smepilot.models import PullEvent, Store

    stages = {
        "wait": "waiting",
        "download": "downloading",
        "unpack": "unpacking",
        "verify": "verifying",
        "done": "done",
    }
    with Bar(args.name) as bar:

        def report(event: PullEvent) -> None:
            speed = "" if event.speed is None else f"{megabytes(int(event.speed))}/s"
            bar.amount(stages[event.stage], event.done_bytes, event.total_bytes, speed)

        path = Store().pull(args.name, report)
    if args.json:
        print_json({"name": args.name, "path": path})
    else:
        print(f"{args.name} is here", file=sys.stderr)
        print(path)
    return 0
