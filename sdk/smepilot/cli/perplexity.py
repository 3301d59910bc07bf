# SPDX-License-Identifier: Apache-2.0
"""`smepilot perplexity`: how well a model predicts a text."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from smepilot.cli.options import add_engine_options, add_role, open_engine
from smepilot.cli.render import Bar, facts, print_json

EXAMPLES = """\
  smepilot perplexity smollm2:135m book.txt
  smepilot perplexity model.gguf book.txt --window 512 --json
  smepilot perplexity model.gguf book.txt --role generated      as if the model had written it
  cat book.txt | smepilot perplexity model.gguf -"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares arguments and options."""
    add_engine_options(parser)
    parser.add_argument("file", metavar="FILE", help="a UTF-8 text; `-` reads standard input")
    parser.add_argument("--window", type=int, metavar="N", help="tokens of a window (the context)")
    add_role(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Measures and prints."""
    data = sys.stdin.buffer.read() if args.file == "-" else Path(args.file).read_bytes()
    text = data.decode("utf-8", "replace")
    with open_engine(args) as engine, Bar("reading") as bar:
        result = engine.perplexity(text, window=args.window, role=args.role, on_progress=bar.fraction)
        computed = engine.prompt_class if args.role == "prompt" else "grouped"
    if args.json:
        print_json({"model": args.model, "file": args.file, "class": computed} | result.as_dict())
        return 0
    facts(
        {
            "perplexity": f"{result.value:.4f}",
            "nats per token": f"{result.nll:.4f}",
            "tokens scored": f"{result.tokens}, {computed}",
            "time": f"{result.seconds:.2f} s, {result.tokens / result.seconds:,.1f} tokens/s",
        }
    )
    return 0
