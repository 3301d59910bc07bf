# SPDX-License-Identifier: Apache-2.0
"""What is counted: one line a kernel and shape, with the bar it has to keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.arm.count_ideal import Weights, grouped

# Processors by what they have; the M4-like ones have no SVE and no FA64, and vectors of 512 bits.
CPUS: Final = {
    "neon": "cortex-a53",
    "neon_dotprod": "cortex-a76",
    "neon_i8mm": "neoverse-n2",
    "sme": "max,sve=off,sme_fa64=off,sme128=off,sme256=off,sme1024=off,sme2048=off,sme512=on",
    "sme2": "max,sve=off,sme_fa64=off,sme128=off,sme256=off,sme1024=off,sme2048=off,sme512=on",
}
FORMATS: Final = {
    "q4s32": Weights(4, offset=True),
    "q4a32": Weights(4, affine=True),
    "q8s32": Weights(8),
}
GROUPED_K: Final = 2048
OF_IDEAL: Final = 1.25


@dataclass(frozen=True)
class Row:
    """One kernel at one shape. Its bar is instructions per product instruction, or instructions over the ideal."""

    kernel: str
    tier: str
    shape: dict[str, int]
    products: tuple[str, ...]  # mnemonics of the instructions that multiply
    per_product: float | None = None
    of_ideal: float | None = None
    ideal: Counter[str] | None = None  # instructions by kind


def grouped_rows() -> Iterator[Row]:
    """Yield decode and small batches of the quantised formats on the cores' dot product instructions."""
    for tier in ("neon_dotprod", "neon_i8mm"):
        for name, weights in FORMATS.items():
            for m in (1, 2, 3, *range(4, 17)):
                shape = {"m": m, "k": GROUPED_K}
                bar = None if m in (2, 3) else OF_IDEAL
                ideal = grouped(tier, weights, shape)
                kernel = f"sp_gemm_f32_q8g32_{name}_16x16_{tier}"
                yield Row(kernel, tier, shape, ("sdot", "smmla"), of_ideal=bar, ideal=ideal)


MATRIX: Final = {"m": 256, "n": 256, "k": 3072}
ROWS: Final = (
    *grouped_rows(),
    Row("sp_gemm_f32_q8r_q8r_32x32_sme", "sme", MATRIX, ("smopa",), per_product=2.3),
    Row("sp_gemm_f32_q8r_q8r_32x32_sme2", "sme2", MATRIX, ("smopa",), per_product=1.45),
)
