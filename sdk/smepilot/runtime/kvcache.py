# SPDX-License-Identifier: Apache-2.0
"""The policy half of the KV cache: who holds which pages of the pool, and who gives them back.

The pool (`Runner.kv`) is a fixed number of pages of 64 tokens and a free list. A running sequence keeps its pages. A
session between two turns is *idle*: its pages stay, so that the next turn processes only what is new, until a running
sequence needs room; then the session idle for longest loses its pages and computes them again, to the same bits, at
its next turn.
"""

from __future__ import annotations

from collections.abc import Sequence as TokenIds
from typing import Protocol

from smepilot.runtime.sequence import Sequence, pages_for


class KvPool(Protocol):
    """Pages of the native pool."""

    @property
    def total(self) -> int:
        """Pages there are."""

    @property
    def free(self) -> int:
        """Pages nobody holds."""

    def alloc(self) -> int:
        """A zeroed page; raises OutOfMemoryError when none is free."""

    def release(self, page: int, /) -> None:
        """Gives a page back."""


class KvCache:
    """Block tables over a pool. Not thread-safe: it belongs to the runtime thread."""

    def __init__(self, pool: KvPool) -> None:
        self._pool = pool
        self._idle: dict[Sequence, None] = {}  # in the order in which they became idle

    @property
    def total(self) -> int:
        """Pages of the pool."""
        return self._pool.total

    @property
    def available(self) -> int:
        """Pages that are free or held by idle sequences."""
        return self._pool.free + sum(sequence.pages for sequence in self._idle)

    def begin(self, sequence: Sequence, tokens: TokenIds[int], roles: bytes) -> int:
        """Makes an idle or new sequence hold `tokens`; returns how many of them are already computed."""
        self._idle.pop(sequence, None)
        cached = sequence.agreement(tokens, roles)
        self._cut(sequence, cached)
        sequence.tokens = list(tokens)
        sequence.roles = bytearray(roles)
        return cached

    def reserve(self, sequence: Sequence, positions: int) -> bool:
        """Gives `sequence` pages for this many positions, from idle sequences if need be; False: not enough."""
        missing = pages_for(positions) - sequence.pages
        while missing > self._pool.free and self._idle:
            oldest = next(iter(self._idle))
            del self._idle[oldest]
            self.release(oldest)
        if missing > self._pool.free:
            return False
        for _ in range(missing):
            sequence.add_page(self._pool.alloc())
        return True

    def release(self, sequence: Sequence) -> None:
        """Takes all pages from `sequence`; its tokens stay and can be computed again."""
        self._idle.pop(sequence, None)
        self._cut(sequence, 0)

    def keep(self, sequence: Sequence) -> None:
        """Marks `sequence` idle: its pages stay until they are needed."""
        self._idle[sequence] = None

    def _cut(self, sequence: Sequence, positions: int) -> None:
        sequence.computed = positions
        while sequence.pages > pages_for(positions):
            self._pool.release(sequence.pop_page())
