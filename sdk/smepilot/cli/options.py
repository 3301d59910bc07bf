# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share: which model and how it is opened, how answers are drawn.

Sampling options have no defaults of their own: what is not given is left to `GenerateParams`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smepilot.engine import Engine
    from smepilot.types import Sampling

_SAMPLING: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "--max-tokens": ("max_tokens", int, "most tokens of an answer (until the model stops)"),
    "--temp": ("temperature", float, "0 picks the likeliest token (0.8)"),
    "--top-k": ("top_k", int, "choose among the k likeliest tokens, 0 for all (40)"),
    "--top-p": ("top_p", float, "choose among the likeliest tokens that reach probability p (0.95)"),
    "--min-p": ("min_p", float, "drop tokens less than p times as likely as the likeliest (0.05)"),
    "--seed": ("seed", int, "same seed, same answer (random)"),
    "--repeat-penalty": ("repetition_penalty", float, "makes tokens seen before less likely, 1 is off (1)"),
    "--presence-penalty": ("presence_penalty", float, "the same for tokens of the answer, 0 is off (0)"),
    "--frequency-penalty": ("frequency_penalty", float, "the same, each time they occur, 0 is off (0)"),
}


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """The model and how to open it."""
    parser.add_argument("model", metavar="MODEL", help="a catalog name, such as smollm2:135m, or a .gguf file")
    group = parser.add_argument_group("engine")
    group.add_argument("--threads", type=int, metavar="N", help="worker threads (one for each physical core)")
    group.add_argument(
        "--ctx", type=int, metavar="N", help="most tokens of prompt and answer (the model's, up to 8192)"
    )
    group.add_argument("--kv-type", choices=("f16", "f32"), default="f16", help="type of keys and values (f16)")
    add_prompt_class(group)
    group.add_argument("--no-cache", action="store_true", help="do not keep packed weights on disk")


def add_prompt_class(group: argparse._ActionsContainer) -> None:
    """How prompts are computed."""
    group.add_argument(
        "--prompt-class",
        choices=("auto", "grouped", "rowwise"),
        default="auto",
        help="scales of prompts: per 32 columns, per row, or the model's measured default (auto)",
    )


def add_role(parser: argparse.ArgumentParser) -> None:
    """What the tokens of a text count as."""
    parser.add_argument(
        "--role",
        choices=("prompt", "generated"),
        default="prompt",
        help="whether the text counts as a prompt or as an answer, which is always grouped (prompt)",
    )


def add_sampling_options(parser: argparse.ArgumentParser) -> None:
    """How answers are drawn."""
    group = parser.add_argument_group("sampling")
    for flag, (name, kind, text) in _SAMPLING.items():
        group.add_argument(flag, dest=name, type=kind, metavar="N" if kind is int else "X", help=text)
    group.add_argument("--stop", action="append", metavar="TEXT", help="end the answer at this text; may be repeated")
    group.add_argument("--ignore-eos", action="store_true", default=None, help="never let the model end the answer")


def sampling(args: argparse.Namespace) -> Sampling:
    """The sampling options that were given."""
    names = [name for name, _, _ in _SAMPLING.values()] + ["stop", "ignore_eos"]
    given: Any = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    return given  # type: ignore[no-any-return]


def open_engine(args: argparse.Namespace) -> Engine:
    """Opens the model, with a progress bar where it has to be packed and calibrated first."""
    from smepilot.cli.render import Bar
    from smepilot.engine import Engine

    with Bar("preparing the model") as bar:
        return Engine.open(
            args.model,
            threads=args.threads,
            ctx=args.ctx,
            kv_dtype=args.kv_type,
            cache=not args.no_cache,
            prompt_class=args.prompt_class,
            on_progress=bar.fraction,
        )
