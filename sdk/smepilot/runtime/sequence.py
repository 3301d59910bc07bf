# SPDX-License-Identifier: Apache-2.0
"""A sequence: the tokens of one request or conversation, and how many of them have keys and values in the pool.

`tokens[:computed]` are in the KV pages of `table`; the rest is still to be processed. A prompt is a long rest,
decoding is a rest of one: the scheduler knows no other difference between the two phases.

Every token has a role. It was given (prompt) or chosen by the model (generated); the role may select the precision
class a token is computed in, so keys and values are only as good as their token *and* role (`agreement`).
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as TokenIds
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

PAGE_TOKENS = 64


class Role(IntEnum):
    """Where a token comes from."""

    PROMPT = 0
    GENERATED = 1


def pages_for(positions: int) -> int:
    """KV pages that hold this many positions."""
    return -(-positions // PAGE_TOKENS)


class Sequence:
    """Token ids and roles, the block table of their KV pages, and the position up to which they are computed."""

    __slots__ = ("_table", "computed", "pages", "roles", "tokens")

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.roles = bytearray()
        self.computed = 0
        self.pages = 0
        self._table = np.empty(8, dtype=np.int32)

    def __len__(self) -> int:
        """Tokens, computed or not."""
        return len(self.tokens)

    @property
    def pending(self) -> int:
        """Tokens still to be processed."""
        return len(self.tokens) - self.computed

    @property
    def table(self) -> NDArray[np.int32]:
        """Page ids, int32[pages]; page i holds positions [64 * i, 64 * i + 64)."""
        return self._table[: self.pages]

    def append(self, token: int) -> None:
        """Adds a generated token."""
        self.tokens.append(token)
        self.roles.append(Role.GENERATED)

    def stretches(self, count: int) -> Iterator[tuple[int, int, Role]]:
        """The next `count` tokens to process, in stretches of one role: the first position, the end, the role."""
        start, stop = self.computed, self.computed + count
        while start < stop:
            rest = self.roles[start:stop]
            end = stop - len(rest.lstrip(rest[:1]))
            yield start, end, Role(rest[0])
            start = end

    def add_page(self, page: int) -> None:
        """Adds a page at the end of the block table."""
        if self.pages == len(self._table):
            grown = np.empty(2 * len(self._table), dtype=np.int32)
            grown[: self.pages] = self._table
            self._table = grown
        self._table[self.pages] = page
        self.pages += 1

    def pop_page(self) -> int:
        """Takes the last page out of the block table."""
        self.pages -= 1
        return int(self._table[self.pages])

    def agreement(self, tokens: TokenIds[int], roles: bytes | bytearray) -> int:
        """Computed positions that `tokens` with `roles` would compute to the same bits.

        At least the last token is left to compute, since its logits are wanted.
        """
        limit = min(self.computed, len(tokens) - 1)
        if self.tokens[:limit] == tokens[:limit] and self.roles[:limit] == roles[:limit]:
            return limit
        return next(i for i in range(limit) if self.tokens[i] != tokens[i] or self.roles[i] != roles[i])
