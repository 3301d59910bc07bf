# SPDX-License-Identifier: Apache-2.0
"""What is measured: cases, named as llama-bench names them.

    pp512            a prompt of 512 tokens, from an empty cache
    pp512 @ d2048    the same behind 2048 tokens that are already in the cache
    tg64             64 tokens generated one after the other
    tg64 x8          64 steps of 8 sequences at once; the rate counts the tokens of all of them

A rate is tokens per second: of the prompt for `pp`, of all sequences together for `tg`. The tokens at `depth` are
never part of the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from smepilot.errors import InvalidParameterError

Phase = Literal["pp", "tg"]

_NAME = re.compile(r"(pp|tg)([1-9]\d*)(?: x([1-9]\d*))?(?: @ d(\d+))?")
_RANGE = re.compile(r"(\d+)(?:-(\d+)(?:([+*])(\d+))?)?")
_MOST = 4096  # values of one range; more is a mistyped step


@dataclass(frozen=True, order=True)
class Case:
    """One thing to time.

    Attributes:
        phase: "pp" (prompt processing) or "tg" (text generation).
        tokens: Prompt length, or steps of generation; at least 1.
        depth: Tokens of every sequence already in the cache.
        sequences: Sequences advanced together in one step.
    """

    phase: Phase
    tokens: int
    depth: int = 0
    sequences: int = 1

    @property
    def name(self) -> str:
        """`pp512`, `tg64 x8 @ d2048`."""
        together = f" x{self.sequences}" if self.sequences > 1 else ""
        behind = f" @ d{self.depth}" if self.depth else ""
        return f"{self.phase}{self.tokens}{together}{behind}"

    @property
    def context(self) -> int:
        """Positions that one sequence needs."""
        return self.depth + self.tokens

    @property
    def total(self) -> int:
        """Tokens that one sample processes, over all sequences."""
        return self.tokens * self.sequences


def parse_case(name: str) -> Case:
    """Reads a name back.

    Raises:
        InvalidParameterError: `name` is not a case's name.
    """
    match = _NAME.fullmatch(name.strip())
    if match is None:
        raise InvalidParameterError(
            f"{name!r} names no benchmark case; write pp512, tg64, 'tg64 x8' or 'pp512 @ d2048'"
        )
    phase: Phase = "pp" if match[1] == "pp" else "tg"
    return Case(phase, int(match[2]), depth=int(match[4] or 0), sequences=int(match[3] or 1))


def parse_counts(text: str, option: str) -> list[int]:
    """Reads llama-bench's lists: `512,1024`, `1-4`, `0-4096+1024`, `1-16*2`.

    Args:
        text: The list as typed.
        option: What to call it in an error, e.g. "-p".

    Raises:
        InvalidParameterError: `text` is not such a list.
    """
    return [count for part in text.split(",") for count in _range(part.strip(), text, option)]


def _range(part: str, text: str, option: str) -> Iterable[int]:
    match = _RANGE.fullmatch(part)
    if match is None:
        raise InvalidParameterError(f"{option} {text}: not a list of numbers; write 512 or 128,512 or 0-4096+1024")
    first, last = int(match[1]), int(match[2] or match[1])
    multiply, step = match[3] == "*", int(match[4] or 1)
    if last < first or step < (2 if multiply else 1) or (multiply and first == 0):
        raise InvalidParameterError(f"{option} {text}: the range never reaches {last}; start below it and step upwards")
    values = []
    while first <= last:
        values.append(first)
        first = first * step if multiply else first + step
        if len(values) > _MOST:
            raise InvalidParameterError(f"{option} {text}: more than {_MOST} values; use a larger step")
    return values


def grid(
    prompts: Sequence[int] = (512,),
    generations: Sequence[int] = (64,),
    depths: Sequence[int] = (0,),
    sequences: Sequence[int] = (1,),
) -> list[Case]:
    """All cases of the lists, prompts before generation at each depth; a length of 0 leaves that phase out.

    Only generation is tried with several sequences: a prompt fills the machine by itself.
    """
    cases = []
    for depth in depths:
        cases += [Case("pp", tokens, depth) for tokens in prompts if tokens]
        cases += [Case("tg", tokens, depth, together) for tokens in generations if tokens for together in sequences]
    if not cases or any(together < 1 for together in sequences):
        raise InvalidParameterError("nothing to measure; give -p or -n a length and -b at least 1")
    return list(dict.fromkeys(cases))
