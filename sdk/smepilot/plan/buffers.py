# SPDX-License-Identifier: Apache-2.0
"""The buffers of a forward pass: what each one consists of, and where it lies in the arena.

A buffer is a matrix of activations in the forms that its readers want. Buffers get their place by lifetime: two may
share bytes if no step needs both. All layers repeat the same steps on the same buffers, so one layer decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TOKENS = 16
"""Tokens of an activation panel; the batch limit is rounded up to whole panels."""
GROUP = 32
"""Activations that share a scale in the grouped class."""
ALIGN = 128
"""Bytes: no two buffers share a cache line."""


@dataclass(frozen=True, slots=True)
class Form:
    """What some reader of a buffer wants, or its writer needs.

    Float32 `rows`; int8 `panels`; `rowwise` panels too, with so many `outliers` columns in float32; counters, where the
    writer's tiles make `parts` of rows that have to be complete before they become panels.
    """

    rows: bool = False
    panels: bool = False
    rowwise: bool = False
    outliers: int = 0
    parts: bool = False

    def __or__(self, other: Form) -> Form:
        """All that either wants."""
        return Form(
            self.rows or other.rows,
            self.panels or other.panels,
            self.rowwise or other.rowwise,
            max(self.outliers, other.outliers),
            self.parts or other.parts,
        )

    def sizes(self, k: int, tokens: int) -> tuple[int, int, int, int]:
        """Bytes of rows, panels, rowwise planes and counters for `tokens` tokens of k values, 0 for what is absent."""
        padded = tokens + TOKENS if self.rowwise else tokens  # the last rowwise panel is as wide as the others
        return (
            4 * tokens * k if self.rows else 0,
            padded * k + 3 * 4 * tokens * (k // GROUP) if self.panels else 0,
            4 * tokens * (2 + self.outliers) if self.rowwise else 0,
            4 * (tokens // TOKENS + 1) if self.parts else 0,
        )


@dataclass(frozen=True, slots=True)
class Buffer:
    """A matrix [max_batch][k] of activations in the arena.

    Byte offsets of its parts, None for those that nobody wants: float32 rows; int8 panels and the three planes of the
    grouped class; scales, negated sums and outliers of the rowwise class; counters of panels.
    """

    name: str
    k: int
    nbytes: int
    rows_at: int | None
    panels_at: int | None
    rowwise_at: int | None = None
    counters_at: int | None = None

    @property
    def parts(self) -> str:
        """The parts that there are, in words."""
        words = {
            "rows": self.rows_at,
            "panels": self.panels_at,
            "rowwise": self.rowwise_at,
            "counters": self.counters_at,
        }
        return "  ".join(word for word, at in words.items() if at is not None)


def aligned(nbytes: int) -> int:
    """`nbytes` rounded up to what buffers are aligned to."""
    return -(-nbytes // ALIGN) * ALIGN


_LAYER_LIFETIMES = {"h": ((0, 1), (4, 5)), "q": ((1, 2),), "partial": ((2, 2),), "a": ((2, 3),), "f": ((5, 6),)}
"""First and last step within a layer that need a buffer; the others live for the whole pass."""
_WHOLE = ((0, 6),)


def _overlap(a: tuple[tuple[int, int], ...], b: tuple[tuple[int, int], ...]) -> bool:
    return any(x[0] <= y[1] and y[0] <= x[1] for x in a for y in b)


def _offsets(sizes: Mapping[str, int]) -> tuple[dict[str, int], int]:
    """First fit, largest first: offsets such that buffers alive at once do not overlap; and the peak."""
    placed: dict[str, int] = {}
    for name in sorted(sizes, key=lambda n: -sizes[n]):
        life = _LAYER_LIFETIMES.get(name, _WHOLE)
        at = 0
        for other in sorted(placed, key=lambda n: placed[n]):
            if not _overlap(life, _LAYER_LIFETIMES.get(other, _WHOLE)):
                continue
            if at + sizes[name] <= placed[other]:
                break
            at = max(at, placed[other] + sizes[other])
        placed[name] = at
    return placed, max(placed[n] + sizes[n] for n in sizes)


def place(parts: Mapping[str, tuple[int, tuple[int, int, int, int]]]) -> tuple[dict[str, Buffer], int]:
    """Buffers from k and the bytes of their parts (`Form.sizes`), by name; and the arena's peak."""
    offsets, peak = _offsets({name: sum(map(aligned, sizes)) for name, (_, sizes) in parts.items()})
    buffers = {}
    for name, (k, sizes) in parts.items():
        places: list[int | None] = []
        at = offsets[name]
        for size in sizes:
            places.append(at if size else None)
            at += aligned(size)
        buffers[name] = Buffer(name, k, at - offsets[name], *places)
    return buffers, peak
