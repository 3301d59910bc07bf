# SPDX-License-Identifier: Apache-2.0
"""`smepilot show`: what is known of a model: its entry in the store, and the scalars of its file's metadata."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from smepilot.cli.render import facts, megabytes, plain, print_json

EXAMPLES = """\
  smepilot show smollm2:135m
  smepilot show model.gguf --json"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares arguments and options."""
    parser.add_argument("model", metavar="MODEL", help="a catalog name, or a .gguf file")
    parser.add_argument("--template", action="store_true", help="print the chat template alone")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Shows the model; fails, after showing what the catalog says, when the model is not on this machine."""
    from smepilot.engine import calibration
    from smepilot.errors import NotFoundError
    from smepilot.models import Store

    about: dict[str, Any]
    try:
        about = asdict(Store().show(args.model))
    except NotFoundError:
        about = {"path": Store().resolve(args.model)}
    if about["path"] is not None:
        about["metadata"], about["tensors"] = _read(about["path"])
        found = calibration(args.model)
        about["calibration"] = None if found is None else asdict(found)
    if args.template:
        print(about.get("metadata", {}).get("tokenizer.chat_template", ""))
    elif args.json:
        print_json(about)
    else:
        _print(about)
    if about["path"] is None:
        print(f"not on this machine; run `smepilot pull {args.model}`", file=sys.stderr)
        return 1
    return 0


def _read(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """Scalars of a file's metadata, and its tensors counted by type."""
    from collections import Counter

    from smepilot.weights.gguf import open_gguf

    with open_gguf(path) as source:
        scalars = {key: value for key, value in source.metadata.items() if isinstance(value, str | int | float | bool)}
        return scalars, dict(Counter(info.dtype for info in source.tensors.values()))


def _print(about: dict[str, Any]) -> None:
    metadata, tensors = about.pop("metadata", {}), about.pop("tensors", {})
    found = about.pop("calibration", None)
    lines = {name: plain(value) for name, value in about.items() if value not in (None, ())}
    if "size" in about:
        lines["size"] = megabytes(about["size"])
    if "path" in lines:
        lines["prompt class"] = _prompt_class(found)
    lines |= {name: _short(value) for name, value in metadata.items()}
    lines |= {f"tensors of type {dtype}": str(count) for dtype, count in tensors.items()}
    facts(lines)


def _prompt_class(found: dict[str, Any] | None) -> str:
    """The default class of prompts and what the rowwise one costs, in words."""
    if found is None:
        return "not measured yet; the first start does, where layers are quantised"
    if found["reason"] is not None:
        return f"{found['default']}: {found['reason']}"
    loss = "not measured" if found["loss"] is None else f"{100 * found['loss']:+.2f} %"
    return f"{found['default']}; perplexity of rowwise against grouped: {loss}"


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
