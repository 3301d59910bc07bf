# SPDX-License-Identifier: Apache-2.0
"""`smepilot logits`: writes the logits after every token of a text to a NumPy file, for comparisons."""

from __future__ import annotations

import argparse
from pathlib import Path

from smepilot.cli.options import add_engine_options, add_role, open_engine
from smepilot.cli.render import print_json

EXAMPLES = """\
  smepilot logits smollm2:135m --text "The capital of France is" --out paris.npz
  smepilot logits model.gguf --ids 1,42,7 --kv-type f32 --out x.npz"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares arguments and options."""
    add_engine_options(parser)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--ids", metavar="N,N,...", type=_ids, help="token ids")
    source.add_argument("--text", help="a text; BOS is added where the model wants it")
    add_role(parser)
    parser.add_argument("--out", metavar="FILE", required=True, type=Path, help="an .npz file with `ids` and `logits`")
    parser.add_argument("--json", action="store_true", help="print ids and the likeliest next token as JSON")


def _ids(text: str) -> list[int]:
    return [int(part) for part in text.replace(",", " ").split()]


def run(args: argparse.Namespace) -> int:
    """Computes and writes `ids` int32[n] and `logits` float32[n, vocabulary]."""
    import numpy as np

    with open_engine(args) as engine:
        ids = args.ids if args.ids is not None else engine.tokenize(args.text)
        logits = engine.logits(ids, role=args.role)
        prompts = engine.prompt_class
    with args.out.open("wb") as file:
        np.savez(file, ids=np.array(ids, dtype=np.int32), logits=logits)
    if args.json:
        likeliest = [int(token) for token in logits.argmax(axis=1)]
        print_json(
            {
                "model": args.model,
                "prompt_class": prompts,
                "role": args.role,
                "out": args.out,
                "ids": ids,
                "likeliest": likeliest,
            }
        )
    else:
        print(f"{args.out}: {logits.shape[0]} rows of {logits.shape[1]} logits")
    return 0
