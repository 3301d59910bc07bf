# SPDX-License-Identifier: Apache-2.0
"""The fewest instructions that a grouped product on NEON can do with, as a formula.

Counted are the loads, the unpacking of 4-bit weights (one instruction a vector), the 32-bit zips that SMMLA needs, the
dot products, and three operations to scale each group of each output vector (int32 to float32, the product of both
scales, the multiply-add; affine weights need a second multiply-add for the minimum). Not counted are widening the
float16 scales, starting integer accumulators, anything that moves data, the loop, and the way in and out.

Registers decide how often something is loaded. A block is T tokens by R vectors of four rows and has R * T integer and
as many float accumulators, in at most 24 of the 32 registers; a panel of 16 rows takes 4 / R passes of such a block,
and each pass loads activations anew, or each block weights. The ideal is the cheapest way to cut m tokens into blocks,
so no kernel can look good by choosing a bad block. A load moves up to 32 neighbouring bytes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Final, Literal

Dot = Literal["sdot", "smmla"]
ACCUMULATORS: Final = 24
QUADS: Final = 8  # of one group of 32


@dataclass(frozen=True)
class Weights:
    """A quantised format as the kernels see it."""

    bits: int
    affine: bool = False
    offset: bool = False  # weights are q - 8: the negated sums of the activations are loaded too


def block(dot: Dot, weights: Weights, tokens: int, vectors: int, width: int) -> Counter[str]:
    """Return what one group of all 16 rows costs a block of `tokens` by `vectors` of four rows."""
    passes = 4 // vectors
    lines = vectors * QUADS * weights.bits // 8  # weight vectors of a pass
    outputs = vectors * tokens
    cost: Counter[str] = Counter()
    cost["load"] += passes * (lines // 2 if vectors > 1 else lines)
    cost["unpack"] += passes * vectors * QUADS if weights.bits == 4 else 0
    # A group of a whole panel's tokens is one run of bytes; else a quad of them is, and where the panel has not the
    # eight that a load takes, and nothing may be read beyond it, an odd number takes two.
    exact = tokens in (1, 2, 4) or width >= 8
    activations = tokens if tokens == width else QUADS * ceil(tokens / 8) * (1 if exact else 2)
    if dot == "sdot":
        cost["load"] += passes * activations
        cost["dot"] += passes * outputs * QUADS
    else:
        # A zip that stores makes the operand once for all passes. SMMLA computes pairs of tokens.
        pairs = ceil(tokens / 2)
        outputs = vectors * 2 * pairs
        cost["load"] += activations + passes * 2 * pairs
        cost["zip"] += 2 * pairs + passes * vectors * QUADS
        cost["dot"] += passes * outputs * QUADS // 2
    # Scales and minima of the rows; of the tokens scales, scaled sums and negated sums. For SMMLA, whose results are
    # two tokens by two rows, these are zipped with themselves, once like the activations.
    rows, values = 1 + weights.affine, 1 + weights.affine + weights.offset
    cost["load"] += passes * (rows + values * (ceil(tokens / 8) if dot == "sdot" else ceil(tokens / 4)))
    if dot == "smmla":
        cost["load"] += values * ceil(tokens / 8)
        cost["zip"] += values * ceil(tokens / 4)
    cost["scale"] += passes * outputs * (3 + weights.affine)
    return cost


@cache
def group(unit: str, weights: Weights, m: int, width: int) -> Counter[str]:
    """Return the cheapest way through one group for m tokens of a panel `width` wide."""
    dots: tuple[Dot, ...] = ("sdot", "smmla") if unit == "neon_i8mm" else ("sdot",)
    ways = []
    for tokens in range(1, m + 1):
        for vectors in (1, 2, 4):
            for dot in dots:
                held = 2 * vectors * (tokens if dot == "sdot" else 2 * ceil(tokens / 2))
                if held <= ACCUMULATORS:
                    way = block(dot, weights, tokens, vectors, width)
                    rest = group(unit, weights, m - tokens, width) if tokens < m else Counter()
                    ways.append(way + rest)
    return min(ways, key=lambda way: way.total())


def grouped(unit: str, weights: Weights, shape: dict[str, int]) -> Counter[str]:
    """Return the ideal of one call: all groups of a panel."""
    one = group(unit, weights, shape["m"], shape.get("width", shape["m"]))
    return Counter({kind: count * (shape["k"] // 32) for kind, count in one.items()})
