# SPDX-License-Identifier: Apache-2.0
"""Byte-pair merging from a table that needs no loading.

The usual way keeps the merges in a hash map, and filling it is what makes tokenizers slow to start: 0.06 s for
SmolLM2's 49,000 merges, 0.4 s for the 280,000 of Llama 3, and tens of megabytes, before a prompt of thirty words is
encoded. Here the merges lie in four arrays of 32-bit numbers that are used as they come from the file, grouped by left
token as a sparse matrix is by row:

    right[start[l] : start[l + 1]]   ascending right tokens that token l merges with
    rank[...]                        beside each: position in the model's list, lower goes first
    merged[rank]                     token that a merge makes

A lookup is a binary search in one group (half a microsecond); words that were seen are remembered by the caller. The
merging itself is the textbook's: a heap of candidate pairs over a linked list, so that a word of n bytes takes
n log n steps also when the "word" is a megabyte of one letter.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise

_NO_RANK = 0xFFFFFFFF
_GONE = -1


class MergeTable:
    """The merges of a vocabulary."""

    NAMES = ("start", "right", "rank", "merged")

    def __init__(self, blobs: dict[str, bytes | memoryview]) -> None:
        """`blobs`: the arrays by name, as `build` makes them."""
        self._start, self._right, self._rank, self._merged = (
            memoryview(blobs[name]).cast("B").cast("I") for name in self.NAMES
        )

    @staticmethod
    def build(size: int, merges: Sequence[int]) -> dict[str, bytes | memoryview]:
        """The arrays for `merges`: left, right and merged token id below `size` of each, in order of rank."""
        import numpy as np

        left, right, merged = np.array(merges, np.uint64).reshape(-1, 3).T
        pairs, rank = np.unique(left << np.uint64(32) | right, return_index=True)  # of equal pairs the first counts
        start = np.searchsorted(pairs >> np.uint64(32), np.arange(size + 1, dtype=np.uint64))
        arrays = (start, pairs & np.uint64(0xFFFFFFFF), rank, merged)
        return {name: values.astype(np.uint32).tobytes() for name, values in zip(MergeTable.NAMES, arrays, strict=True)}

    def apply(self, ids: list[int]) -> list[int]:
        """Merges until no pair is left: always the lowest rank, and of equal ones the leftmost."""
        end = len(ids)
        after = list(range(1, end + 1))  # neighbours of each place; merged places drop out
        before = list(range(-1, end - 1))
        heap = [
            (rank, place, left, right)
            for place, (left, right) in enumerate(pairwise(ids))
            if (rank := self._lookup(left, right)) != _NO_RANK
        ]
        heapify(heap)
        while heap:
            rank, place, left, right = heappop(heap)
            other = after[place]
            if ids[place] != left or other >= end or ids[other] != right:
                continue  # one of the two was merged with someone else meanwhile
            token = ids[place] = self._merged[rank]
            ids[other] = _GONE
            follower = after[place] = after[other]
            if follower < end:
                before[follower] = place
                self._push(heap, place, token, ids[follower])
            if (previous := before[place]) >= 0:
                self._push(heap, previous, ids[previous], token)
        return [token for token in ids if token != _GONE]

    def _push(self, heap: list[tuple[int, int, int, int]], place: int, left: int, right: int) -> None:
        rank = self._lookup(left, right)
        if rank != _NO_RANK:
            heappush(heap, (rank, place, left, right))

    def _lookup(self, left: int, right: int) -> int:
        low, high = self._start[left], self._start[left + 1]
        found = bisect_left(self._right, right, low, high)
        if found < high and self._right[found] == right:
            return self._rank[found]
        return _NO_RANK
