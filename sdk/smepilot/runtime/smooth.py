# SPDX-License-Identifier: Apache-2.0
"""Smoothing: how the columns of a linear layer's input are scaled before it is quantised with one scale per token.

A few columns of an activation are much larger than the rest, and one scale per row would spend all its steps on them.
So column j of the input is divided by s[j] and column j of the weights multiplied by it, which changes no product. With

    s = sqrt(largest |x| / largest |w|)

both sides of a column become equally large: sqrt(|x| |w|). The columns where even that is largest are outliers: they
are left out of both int8 operands (s = u = 0) and added in float32.

All of it is square root, division and comparison of float32 numbers, in a fixed order: the same bits on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smepilot import _native
from smepilot.errors import NumericError

OUTLIERS = 4
"""Columns of an input that are kept in float32."""
PANEL_ROWS = 16

Vector = NDArray[np.float32]

_FLOOR = np.float32(2.0**-16)  # of the largest column: a column that the text never used counts as this large
_ONE = np.float32(1)
_PANELS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Smoothing:
    """`s` and `u` = 1 / s, float32 [k], both 0 at the `outliers`, which ascend."""

    s: Vector
    u: Vector
    outliers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """A packed weight matrix [rows][k]."""

    format: str
    k: int
    rows: int
    panels: memoryview

    def pieces(self) -> Iterator[tuple[int, memoryview]]:
        """Runs of panels with the first one's number, small enough that threads end together."""
        count = -(-self.rows // PANEL_ROWS)
        each = len(self.panels) // count
        for first in range(0, count, _PANELS_AT_ONCE):
            yield first, self.panels[first * each : (first + _PANELS_AT_ONCE) * each]


def unit(k: int) -> Smoothing:
    """No smoothing and no outliers."""
    ones = np.ones(k, np.float32)
    return Smoothing(ones, ones, ())


def smoothing(x: Vector, w: Vector, outliers: int = OUTLIERS) -> Smoothing:
    """How an input is smoothed whose columns are as large as `x`, and those of the weights that read it as `w`.

    Raises:
        NumericError: a size is not finite, or its quotient is not.
    """
    if not (np.isfinite(x).all() and np.isfinite(w).all()):
        raise NumericError("a size is not finite")
    if not x.any() or not w.any():
        return unit(len(x))
    x, w = np.maximum(x, x.max() * _FLOOR), np.maximum(w, w.max() * _FLOOR)
    with np.errstate(all="ignore"):
        s = np.sqrt(x / w)
        u = _ONE / s
    if not (np.isfinite(s).all() and np.isfinite(u).all()):
        raise NumericError("a smoothing scale is not finite")
    sizes = x.astype(np.float64) * w.astype(np.float64)  # exact, so equals are equal everywhere
    largest = np.sort(np.argsort(-sizes, kind="stable")[: min(outliers, len(x) // PANEL_ROWS)])
    s[largest] = u[largest] = 0
    return Smoothing(s, u, tuple(largest.tolist()))


def column_sizes(matrices: Sequence[Matrix], threads: Executor) -> Vector:
    """The largest |w| of each column over matrices that read the same input."""

    def largest(format: str, k: int, panels: memoryview) -> Vector:
        sizes = np.zeros(k, np.float32)
        _native.column_peaks(format, panels, sizes)
        return sizes

    parts = [threads.submit(largest, m.format, m.k, panels) for m in matrices for _, panels in m.pieces()]
    return np.max([part.result() for part in parts], axis=0)  # type: ignore[no-any-return]


def row_scales(matrix: Matrix, s: Vector, threads: Executor) -> Vector:
    """127 / amax and amax / 127 of each row, float32 [2][rows, padded to whole panels]; amax is its largest |w * s|.

    Raises:
        NumericError: the matrix has no rowwise form.
    """
    scales = np.empty((2, -(-matrix.rows // PANEL_ROWS) * PANEL_ROWS), np.float32)

    def fill(first: int, panels: memoryview) -> None:
        rows = slice(first * PANEL_ROWS, (first + _PANELS_AT_ONCE) * PANEL_ROWS)
        _native.row_scales(matrix.format, panels, s, scales[0, rows], scales[1, rows])

    for part in [threads.submit(fill, first, panels) for first, panels in matrix.pieces()]:
        part.result()
    return scales
