# SPDX-License-Identifier: Apache-2.0
"""The command line: `smepilot COMMAND ...`, one module a command.

Only the module of the command that is asked for is imported, so `smepilot run` does not pay for `smepilot bench`. A
command module has `HELP` (one line), `EXAMPLES`, `configure(parser)` and `run(args) -> exit code`.

Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 failed, 2 wrong usage, 130
interrupted, 141 the reader of our output went away. An error is one line; `--debug` shows where it came from.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

COMMANDS = {
    "run": "chat with a model, or answer one prompt",
    "pull": "fetch a model of the catalog",
    "list": "list the models on this machine",
    "show": "show what is known of a model",
    "rm": "remove a model",
    "perplexity": "how well a model predicts a text",
    "logits": "write a model's logits to a file",
    "bench": "measure speed",
    "doctor": "show what this machine has and what is used",
}

FAILED, USAGE, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, io.TextIOWrapper):
            output.reconfigure(errors="replace")  # an output that cannot show a letter gets a question mark
    top = _top_parser()
    first = top.parse_args(argv)
    if first.command is None:
        top.print_help()
        return USAGE
    if first.command not in COMMANDS:
        top.error(f"no command {first.command!r}; `smepilot --help` lists them")
    module = import_module(f"smepilot.cli.{first.command}")
    parser = argparse.ArgumentParser(
        prog=f"smepilot {first.command}",
        description=f"{COMMANDS[first.command].capitalize()}.",
        epilog=f"examples:\n{module.EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.configure(parser)
    parser.add_argument("--debug", action="store_true", help="show tracebacks and log messages")
    args = parser.parse_intermixed_args(first.rest)
    args.debug |= first.debug
    return _guarded(module.run, args)


def _top_parser() -> argparse.ArgumentParser:
    width = max(map(len, COMMANDS))
    listing = "\n".join(f"  {name:<{width}}  {text}" for name, text in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="smepilot",
        usage="smepilot COMMAND ...",
        description="An on-device LLM engine.",
        epilog=f"commands:\n{listing}\n\n`smepilot COMMAND --help` explains one of them.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=_version())
    parser.add_argument("--debug", action="store_true", help="show tracebacks and log messages")
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _version() -> str:
    from smepilot import __version__

    return f"smepilot {__version__}"


def _guarded(command: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """Runs a command; errors become one line and an exit code."""
    from smepilot.errors import InvalidParameterError, SmePilotError

    if args.debug:
        import logging

        logging.basicConfig(level=logging.DEBUG)
    try:
        code = command(args)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered has nowhere to go
        return PIPE_CLOSED
    except (SmePilotError, OSError) as error:
        if args.debug:
            raise
        text = " ".join(str(error).split())
        print(f"smepilot: error: {text}", file=sys.stderr)
        return USAGE if isinstance(error, InvalidParameterError) else FAILED
