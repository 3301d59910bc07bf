# SPDX-License-Identifier: Apache-2.0
"""Submits generations to a loop over the stand-in and collects what comes back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from smepilot.runtime.loop import Loop
from smepilot.runtime.request import Event, Finish, Generation
from smepilot.runtime.sampler import Sampler
from smepilot.types import GenerateParams
from tests.sdk.runtime.standin import VOCAB, StandinRunner


class Job(Generation):
    """A greedy generation with a queue to read it from."""

    def __init__(self, tokens: Sequence[int], count: int, *, capacity: int = 1024, **more: Any) -> None:
        self.events: SimpleQueue[Event] = SimpleQueue()
        params = GenerateParams(temperature=0)
        super().__init__(
            tokens,
            Sampler(params, VOCAB, frozenset()),
            self.events.put,
            ends=more.pop("ends", frozenset()),
            max_tokens=count,
            capacity=capacity,
            **more,
        )

    def finish(self, timeout: float = 20) -> tuple[list[int], Finish]:
        """All tokens, and the end."""
        tokens: list[int] = []
        while True:
            event = self.events.get(timeout=timeout)
            if isinstance(event, Finish):
                return tokens, event
            tokens.append(event)


@contextmanager
def running(**options: Any) -> Iterator[tuple[Loop, StandinRunner]]:
    """A loop over a stand-in runner; on leaving, every page must have come back."""
    runner = StandinRunner(**options)
    loop = Loop(runner)  # type: ignore[arg-type]
    try:
        yield loop, runner
    finally:
        loop.close()
    assert runner.closed
