# SPDX-License-Identifier: Apache-2.0
"""Logits of given tokens, and perplexity as their summary.

Both go through the scheduler like any other request, so they share steps with whatever else is running.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue

from smepilot._native import log_softmax_at
from smepilot.errors import CancelledError
from smepilot.runtime.loop import Loop
from smepilot.runtime.request import Event, Finish, Rows, Scoring
from smepilot.runtime.sequence import Role
from smepilot.runtime.tiers import usable_tiers


def score(loop: Loop, tokens: Sequence[int], on_rows: Callable[[int, Rows], None], role: Role = Role.PROMPT) -> None:
    """Runs `tokens` and hands the logits of every position to `on_rows` (see `Scoring`); waits for the end."""
    events: SimpleQueue[Event] = SimpleQueue()
    request = Scoring(tokens, on_rows, events.put, role=role)
    loop.submit(request)
    try:
        finish = events.get()
    except BaseException:
        loop.cancel(request)
        raise
    if isinstance(finish, Finish) and finish.error is not None:
        raise finish.error
    if isinstance(finish, Finish) and finish.reason == "cancelled":
        raise CancelledError("cancelled before all logits were computed")


def windows(count: int, size: int) -> Iterator[tuple[int, int, int]]:
    """Cuts `count` tokens into windows (begin, end, first): tokens first to end are scored in this window.

    Windows overlap by half, every token but the very first is scored exactly once.
    """
    begin, first = 0, 1
    while first < count:
        end = min(begin + size, count)
        yield begin, end, first
        begin, first = begin + max(1, size // 2), end


def perplexity(
    loop: Loop,
    tokens: Sequence[int],
    window: int,
    on_progress: Callable[[float], None] | None = None,
    role: Role = Role.PROMPT,
) -> float:
    """Mean negative log-likelihood of all tokens but the first, in nats, each computed in `role`."""
    total, tiers = 0.0, usable_tiers()
    for begin, end, first in windows(len(tokens), window):

        def add(start: int, rows: Rows, begin: int = begin, end: int = end, first: int = first) -> None:
            nonlocal total
            for position, row in enumerate(rows, begin + start + 1):  # this row predicts the token at `position`
                if first <= position < end:
                    total -= log_softmax_at(row, tokens[position], tiers=tiers)

        score(loop, tokens[begin:end], add, role)
        if on_progress is not None:
            on_progress(end / len(tokens))
    return total / (len(tokens) - 1)
