# SPDX-License-Identifier: Apache-2.0
"""Smoothing: exact arithmetic, ties, edges; and the sizes of packed matrices against the file's own values."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from smepilot.errors import InvalidParameterError, NumericError
from smepilot.runtime import loader, smooth
from tests import random_llama
from tests.random_llama import Shape

QUANTISED = ("Q4_0", "Q4_1", "Q8_0")
SHAPE = Shape(d_model=96, d_ff=2112, heads=6, kv_heads=2)  # ffn matrices have more panels than one piece
F32 = np.float32


def sizes(*values: float) -> smooth.Vector:
    return np.array(values, F32)


def test_both_sides_become_equally_large() -> None:
    x, w = sizes(*[1, 4, 9, 100] * 16), sizes(*[4, 1, 1, 25] * 16)
    found = smooth.smoothing(x, w, outliers=0)
    assert found.outliers == ()
    assert (found.s[:4] == [0.5, 2, 3, 2]).all()
    assert (found.u == F32(1) / found.s).all()
    assert np.allclose(x * found.u, w * found.s)


def test_the_largest_columns_are_left_out() -> None:
    x = np.ones(64, F32)
    x[[5, 17, 40, 63]] = [8, 9, 7, 1000]
    found = smooth.smoothing(x, np.ones(64, F32))
    assert found.outliers == (5, 17, 40, 63)
    assert not found.s[list(found.outliers)].any()
    assert not found.u[list(found.outliers)].any()
    assert found.s.astype(bool).sum() == 60


def test_ties_go_to_the_lower_column() -> None:
    assert smooth.smoothing(np.ones(64, F32), np.ones(64, F32)).outliers == (0, 1, 2, 3)
    # 3 * 5 and 5 * 3: equal sizes, from different factors
    x, w = np.ones(64, F32), np.ones(64, F32)
    x[[9, 30]], w[[9, 30]] = (3, 5), (5, 3)
    assert smooth.smoothing(x, w, outliers=1).outliers == (9,)


def test_a_narrow_input_has_fewer_outliers() -> None:
    assert smooth.smoothing(np.ones(32, F32), np.ones(32, F32)).outliers == (0, 1)


def test_an_unused_column_counts_as_small() -> None:
    x = np.full(64, 256, F32)
    x[7] = 0
    found = smooth.smoothing(x, np.ones(64, F32), outliers=0)
    assert found.s[7] == F32(256 * 2.0**-16) ** F32(0.5)


@pytest.mark.parametrize("empty", [0, 1])
def test_nothing_to_smooth(empty: int) -> None:
    pair = [np.ones(64, F32), np.ones(64, F32)]
    pair[empty][:] = 0
    found = smooth.smoothing(*pair)
    assert (found.s == 1).all()
    assert (found.u == 1).all()
    assert found.outliers == ()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("side", [0, 1])
def test_what_is_not_finite_is_refused(bad: float, side: int) -> None:
    pair = [np.ones(64, F32), np.ones(64, F32)]
    pair[side][3] = bad
    with pytest.raises(NumericError):
        smooth.smoothing(*pair)


def test_a_quotient_out_of_range_is_refused() -> None:
    with pytest.raises(NumericError):
        smooth.smoothing(np.full(64, 1e30, F32), np.full(64, 1e-30, F32))


positive = hnp.arrays(F32, 64, elements=st.floats(0, 2.0**20, width=32))


@given(x=positive, w=positive)
def test_any_sizes(x: smooth.Vector, w: smooth.Vector) -> None:
    try:
        found = smooth.smoothing(x, w)
    except NumericError:  # subnormal weights under large activations
        assert w.max() < 2.0**-90
        return
    kept = np.setdiff1d(np.arange(64), found.outliers)
    assert list(found.outliers) == sorted(set(found.outliers))
    assert np.isfinite(found.s).all()
    assert np.isfinite(found.u).all()
    assert (found.s[kept] > 0).all()
    assert (found.u[kept] == F32(1) / found.s[kept]).all()


# ---- packed matrices


@pytest.fixture(params=QUANTISED)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> loader.Model:
    return loader.load(random_llama.write(tmp_path / "m.gguf", SHAPE, dtype=request.param), cache_dir=None)


def matrix(model: loader.Model, name: str) -> tuple[smooth.Matrix, smooth.Vector]:
    """A packed matrix, and the file's values with the rows in packed order."""
    (tensor,) = (tensor for tensor in gguf.GGUFReader(model.source.path).tensors if tensor.name == name)
    rows = gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(model.weights[name][3], -1)
    (order,) = (each.order() for each in loader.parameters(model.config) if each.name == name)
    return smooth.Matrix(*model.weights[name][1:], model.packed[name]), rows[order]


@pytest.mark.parametrize("name", ["blk.0.attn_q.weight", "blk.0.ffn_gate.weight", "blk.0.ffn_down.weight"])
def test_sizes_are_the_file_s(model: loader.Model, name: str) -> None:
    packed, rows = matrix(model, name)
    s = np.random.default_rng(1).uniform(0.25, 4, packed.k).astype(F32)
    s[11] = 0
    with ThreadPoolExecutor(max_workers=2) as threads:
        columns = smooth.column_sizes([packed, packed], threads)
        scales = smooth.row_scales(packed, s, threads)
    amax = np.abs(rows * s).max(axis=1)
    assert (columns == np.abs(rows).max(axis=0)).all()
    assert scales.shape == (2, -(-len(rows) // 16) * 16)
    assert (scales[0, : len(rows)] == F32(127) / amax).all()
    assert (scales[1, : len(rows)] == amax / F32(127)).all()
    assert not scales[:, len(rows) :].any()


def test_arrays_of_the_wrong_size_are_refused(model: loader.Model) -> None:
    from smepilot import _native

    packed, _ = matrix(model, "blk.0.attn_q.weight")
    short, ones = np.zeros(15, F32), np.ones(packed.k, F32)
    with pytest.raises(InvalidParameterError):
        _native.row_scales(packed.format, packed.panels, ones, short, short)
    with pytest.raises(InvalidParameterError):
        _native.column_peaks(packed.format, packed.panels[:-64], ones)
    with pytest.raises(InvalidParameterError):
        _native.column_peaks(packed.format, packed.panels[:0], ones)
