# SPDX-License-Identifier: Apache-2.0
"""What a chat template may use up: it is a program that came with a file.

Jinja repeats things in two ways, loops and calls (macros, recursive loops); each round is a step. Values grow through
a handful of operators, methods and filters; what those are about to make is measured first. Whoever goes beyond the
budget gets an error instead of the machine. Honest templates take some hundred steps per message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

MAX_STEPS = 2_000_000  # a second, about
CALL_STEPS = 10
MAX_SIZE = 1 << 24  # characters or elements of a value, and characters of the output: 4 million tokens
_MAX_BITS = 1 << 14  # of an integer

_WIDE_FIELD = re.compile(r"\d{5}|%[^%a-z]*\*")  # "%99999d", "{:>99999}", "%*d": a width that makes text of nothing
_WIDTHS = frozenset({"center", "ljust", "rjust", "zfill", "expandtabs"})


class BudgetError(Exception):
    """The template ran for too long or made too much."""


class Budget:
    """What one rendering has used up."""

    def __init__(self) -> None:
        self.steps = 0
        self.written = 0

    def spend(self, steps: int) -> None:
        """Counts a round of a loop, or a call, which costs as much as `CALL_STEPS` of them."""
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise BudgetError(f"it takes more than {MAX_STEPS} steps; does it loop for ever?")

    def write(self, text: str) -> str:
        """Counts output, and returns it."""
        self.written += len(text)
        check_size(self.written)
        return text


current: ContextVar[Budget] = ContextVar("current")  # a template may be rendered by several threads at once


@contextmanager
def running() -> Iterator[None]:
    """Gives the body, one rendering, a new budget."""
    token = current.set(Budget())
    try:
        yield
    finally:
        current.reset(token)


def gather(chunks: Iterable[str]) -> str:
    """The chunks as one text, stopped as soon as it is too long."""
    size = 0
    taken = []
    for chunk in chunks:
        size += len(chunk)
        check_size(size)
        taken.append(chunk)
    return "".join(taken)


def check_size(size: int) -> None:
    """Refuses to make a value of that many characters or elements."""
    if size > MAX_SIZE:
        raise BudgetError(f"it makes a value of more than {MAX_SIZE} characters or elements")


def rounds(items: Iterable[Any]) -> Iterator[Any]:
    """The items, each counted."""
    budget = current.get()
    for item in items:
        budget.spend(1)
        yield item


def join(items: Iterable[Any], separator: str = "") -> str:
    """The items as one text, measured before it is made."""
    texts = [str(item) for item in items]
    check_size(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


def check_operator(operator: str, left: Any, right: Any) -> None:
    """Refuses ``left operator right`` where the result would be out of proportion."""
    if isinstance(left, int) and isinstance(right, int):
        bits = {"*": left.bit_length() + right.bit_length(), "**": left.bit_length() * right}.get(operator, 0)
        if bits > _MAX_BITS:
            raise BudgetError(f"it makes a number of more than {_MAX_BITS} bits")
    elif operator == "*":
        for many, count in ((left, right), (right, left)):
            if isinstance(many, Sequence) and isinstance(count, int):
                check_size(len(many) * count)
    elif operator == "+" and isinstance(left, Sequence) and isinstance(right, Sequence):
        check_size(len(left) + len(right))
    elif operator == "%" and isinstance(left, str):
        check_format(left)


def check_format(pattern: str) -> None:
    """Refuses a format whose fields are padded to great widths."""
    if _WIDE_FIELD.search(pattern):
        raise BudgetError(f"it pads to a great width with the format {pattern!r:.60}")


def check_method(text: str, name: str, arguments: Sequence[Any]) -> None:
    """Refuses the call ``text.name(*arguments)`` where the result would be out of proportion."""
    if name in _WIDTHS:
        widths = [number for number in arguments if isinstance(number, int)]
        check_size(max(widths, default=0) * (text.count("\t") if name == "expandtabs" else 1))
    elif name == "replace" and len(arguments) >= 2:
        check_replace(text, *arguments[:2])
    elif name == "join" and arguments and isinstance(arguments[0], Sequence):
        check_size(sum(len(item) for item in arguments[0] if isinstance(item, str)) + len(text) * len(arguments[0]))
    elif name in ("format", "format_map"):
        check_format(text)
    elif name == "translate":
        raise BudgetError("it uses str.translate, which is not allowed here")


def check_replace(text: str, old: Any, new: Any) -> None:
    """Refuses a replacement that blows a text up."""
    if isinstance(old, str) and isinstance(new, str):
        check_size(len(text) + text.count(old) * len(new))
