# SPDX-License-Identifier: Apache-2.0
"""What is counted: one line a kernel and shape, with the bar it has to keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.arm.count_ideal import Weights, grouped
from tests.arm.processors import PROCESSORS

# What each tier is counted on. Streaming vectors have 512 bits.
EMULATED: Final = {processor.name: processor.cpu for processor in PROCESSORS}
CPUS: Final = {
    "neon": EMULATED["a53"],
    "neon_dotprod": EMULATED["a76"],
    "neon_i8mm": EMULATED["n2"],
    "sme": EMULATED["m4"],
    "sme2": EMULATED["m4"],
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


def core_rows() -> Iterator[Row]:
    """Yield the other products on the cores: no bar, but nobody should be surprised by a change."""
    rowwise = {"m": 64, "n": 32, "k": 1024}
    yield Row("sp_gemm_f32_q8r_q8r_4x8_neon", "neon", rowwise, ("smull", "smull2", "smlal", "smlal2"))
    yield Row("sp_gemm_f32_q8r_q8r_8x8_neon_dotprod", "neon_dotprod", rowwise, ("sdot",))
    yield Row("sp_gemm_f32_q8r_q8r_8x8_neon_i8mm", "neon_i8mm", rowwise, ("smmla",))
    for name in ("f32", "f16"):
        for m in (1, 2, 4):
            yield Row(f"sp_gemm_f32_f32_{name}_4x64_neon", "neon", {"m": m, "n": 64, "k": 256}, ("fmla",))


def attention_rows() -> Iterator[Row]:
    """Yield the products of an attention tile: 96 query rows against the keys, and its weights against the values."""
    for tier, bar in (("sme", None), ("sme2", 2.0)):
        for d in (64, 128):
            scores = {"m": 96, "n": 64, "k": d, "strip": 16 * d, "step": 16}
            values = {"m": 96, "n": d, "k": 64, "strip": 16, "step": d}
            for shape in (scores, values):
                yield Row(f"sp_gemm_f32_f32_f32_128x128_{tier}", tier, shape, ("fmopa",), per_product=bar)


def matrix_grouped_rows() -> Iterator[Row]:
    """Yield the quantised formats on the matrix unit: no bar, for scales between products keep it from its peak."""
    for tier in ("sme", "sme2"):
        for name in FORMATS:
            shape = {"m": 16, "k": GROUPED_K}
            yield Row(f"sp_gemm_f32_q8g32_{name}_16x16_{tier}", tier, shape, ("smopa",))


MATRIX: Final = {"m": 256, "n": 256, "k": 3072}
ROWS: Final = (
    *grouped_rows(),
    *core_rows(),
    Row("sp_gemm_f32_q8r_q8r_32x32_sme", "sme", MATRIX, ("smopa",), per_product=2.3),
    Row("sp_gemm_f32_q8r_q8r_32x32_sme2", "sme2", MATRIX, ("smopa",), per_product=1.45),
    Row("sp_gemm_f32_q8r_q8r_32x32_sme2", "sme2", {"m": 1, "n": 256, "k": 3072}, ("sdot",)),
    *attention_rows(),
    *matrix_grouped_rows(),
)
