# SPDX-License-Identifier: Apache-2.0
"""Every element type a GGUF file may name: its number, name, elements and bytes per block.

All of them are known, not only those the engine runs, because sizes are needed to check that a file is whole, and
because an error should say "Q4_K", not "type 12". Sizes follow ggml's block structs. Numbers 4, 5, 31-33 and 36-38
were withdrawn by ggml (the last six were repacked forms of Q4_0 and IQ4_NL that never were meant to be stored).
"""

from __future__ import annotations

from typing import NamedTuple


class DType(NamedTuple):
    """An element type: `block` consecutive elements of a row are stored in `nbytes` bytes."""

    name: str
    block: int
    nbytes: int


BY_NUMBER: dict[int, DType] = {
    0: DType("F32", 1, 4),
    1: DType("F16", 1, 2),
    2: DType("Q4_0", 32, 18),
    3: DType("Q4_1", 32, 20),
    6: DType("Q5_0", 32, 22),
    7: DType("Q5_1", 32, 24),
    8: DType("Q8_0", 32, 34),
    9: DType("Q8_1", 32, 36),
    10: DType("Q2_K", 256, 84),
    11: DType("Q3_K", 256, 110),
    12: DType("Q4_K", 256, 144),
    13: DType("Q5_K", 256, 176),
    14: DType("Q6_K", 256, 210),
    15: DType("Q8_K", 256, 292),
    16: DType("IQ2_XXS", 256, 66),
    17: DType("IQ2_XS", 256, 74),
    18: DType("IQ3_XXS", 256, 98),
    19: DType("IQ1_S", 256, 50),
    20: DType("IQ4_NL", 32, 18),
    21: DType("IQ3_S", 256, 110),
    22: DType("IQ2_S", 256, 82),
    23: DType("IQ4_XS", 256, 136),
    24: DType("I8", 1, 1),
    25: DType("I16", 1, 2),
    26: DType("I32", 1, 4),
    27: DType("I64", 1, 8),
    28: DType("F64", 1, 8),
    29: DType("IQ1_M", 256, 56),
    30: DType("BF16", 1, 2),
    31: DType("Q4_0_4_4", 32, 18),
    32: DType("Q4_0_4_8", 32, 18),
    33: DType("Q4_0_8_8", 32, 18),
    34: DType("TQ1_0", 256, 54),
    35: DType("TQ2_0", 256, 66),
    36: DType("IQ4_NL_4_4", 32, 18),
    37: DType("IQ4_NL_4_8", 32, 18),
    38: DType("IQ4_NL_8_8", 32, 18),
    39: DType("MXFP4", 32, 17),
    40: DType("NVFP4", 64, 36),
    41: DType("Q1_0", 128, 18),
}

# What the engine multiplies with; everything else is read, named and refused.
SUPPORTED = frozenset({"F32", "F16", "BF16", "Q4_0", "Q4_1", "Q8_0"})
