# SPDX-License-Identifier: Apache-2.0
"""A request as the runtime sees it: tokens in, events out.

Two kinds. A `Generation` draws a token from the logits of its last position, step after step; a `Scoring` wants the
logits of every position and draws nothing. The loop treats them alike: it computes what is pending and gives the rows
to `take`.

Events go to the request's sink: a token id for each token drawn (where asked for), then exactly one `Finish`. A
cancelled request gets its Finish from the thread that cancels, at once; whatever comes after it is to be ignored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from collections.abc import Sequence as TokenIds
from time import perf_counter
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smepilot.errors import SmePilotError
from smepilot.runtime.sampler import Sampler
from smepilot.runtime.sequence import Role, Sequence
from smepilot.types import FinishReason

SCORED_TOKENS = 64  # per step: logits of every position are vocabulary * 4 bytes each
Rows = NDArray[np.float32]


class Finish(NamedTuple):
    """The end of a request: a reason, or the error that ended it."""

    reason: FinishReason
    error: SmePilotError | None = None


Event = int | Finish


class Request(ABC):
    """What both kinds have: a prompt with roles, a sequence to compute it in, and a sink.

    `sequence` may still hold an earlier turn; what agrees with the prompt is not computed again. `keep` leaves
    its pages in place at the end. Times are `perf_counter()` seconds, 0.0 until they happen.
    """

    logits: Literal["last", "all"]
    longest_chunk: int | None

    def __init__(
        self, tokens: TokenIds[int], roles: bytes, sink: Callable[[Event], None], sequence: Sequence | None, keep: bool
    ) -> None:
        self.tokens = list(tokens)
        self.roles = roles
        self.sink = sink
        self.sequence = sequence if sequence is not None else Sequence()
        self.keep = keep
        self.admitted = False
        self.cancelled = False
        self.stepping = False  # part of the native step that runs now
        self.cached = 0
        self.submitted = perf_counter()
        self.started = 0.0
        self.first_token = 0.0
        self.last_token = 0.0

    @abstractmethod
    def take(self, rows: Rows) -> Finish | None:
        """Uses the logits of the chunk just computed (last row, or all); returns the end when it is reached."""


class Generation(Request):
    """Draws tokens until one of `ends`, `max_tokens` or `capacity` positions; `quiet` sends no token events."""

    logits = "last"
    longest_chunk = None

    def __init__(
        self,
        tokens: TokenIds[int],
        sampler: Sampler,
        sink: Callable[[Event], None],
        *,
        ends: frozenset[int],
        max_tokens: int | None,
        capacity: int,
        roles: bytes | None = None,
        sequence: Sequence | None = None,
        keep: bool = False,
        quiet: bool = False,
    ) -> None:
        super().__init__(tokens, bytes(len(tokens)) if roles is None else roles, sink, sequence, keep)
        room = capacity - len(tokens)
        self.sampler = sampler
        self.ends = ends
        self.limit = room if max_tokens is None else min(room, max_tokens)
        self.quiet = quiet
        self.drawn: list[int] = []

    def take(self, rows: Rows) -> Finish | None:
        """Draws the next token."""
        token = self.sampler.draw(rows[-1], self.tokens, self.drawn)
        self.last_token = perf_counter()
        if not self.first_token:
            self.first_token = self.last_token
        if token in self.ends:
            return Finish("stop")
        self.drawn.append(token)
        self.sequence.append(token)
        if not self.quiet:
            self.sink(token)
        return Finish("length") if len(self.drawn) >= self.limit else None


class Scoring(Request):
    """Hands the logits of every position to `on_rows(position of the first row, float32[rows, vocab])`.

    `role` is that of all tokens. `on_rows` runs on the runtime thread; the array is only valid during the call.
    """

    logits = "all"
    longest_chunk = SCORED_TOKENS

    def __init__(
        self,
        tokens: TokenIds[int],
        on_rows: Callable[[int, Rows], None],
        sink: Callable[[Event], None],
        *,
        role: Role = Role.PROMPT,
    ) -> None:
        super().__init__(tokens, bytes([role]) * len(tokens), sink, None, keep=False)
        self._on_rows = on_rows

    def take(self, rows: Rows) -> Finish | None:
        """Hands the rows on."""
        end = self.sequence.computed
        self._on_rows(end - len(rows), rows)
        return Finish("stop") if end == len(self.sequence) else None
