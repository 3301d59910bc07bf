# SPDX-License-Identifier: Apache-2.0
"""Models of odd sizes against the oracle, and against themselves on every tier.

Two questions per size. Is it the right function? Float weights with float32 KV must agree with the float64 oracle to
float32 rounding: TIGHT is ten times what was seen. Quantised weights must agree with an oracle that rounds
activations to int8 as the engine does: what remains are values that fall on the other side of a rounding step, and
whatever these make later layers round differently, so NOISE is the size of that rounding itself. Is it one function?
Every tier and two thread counts must give the same bits, with the prompt cut where no boundary of the engine lies.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from smepilot import _native
from smepilot.runtime import loader
from smepilot.runtime.runner import Runner
from smepilot.runtime.sequence import Role
from tests import random_llama
from tests.oracle.llama import Llama
from tests.random_llama import Shape
from tests.rowwise import open_rowwise, smoothing

TIGHT = 1e-5
NOISE = 0.02
TIERS = [tier["name"] for tier in _native.tiers() if tier["built"] and tier["supported"]]
LENGTH = 150  # three pages of 64 positions, the last one not full

HEADS = [Shape(d_model=96, head_dim=d) for d in (8, 16, 24, 40, 48, 64, 72, 80, 96, 104, 120, 128, 160, 256)]
GROUPS = [Shape(head_dim=40, heads=h, kv_heads=k) for h, k in ((1, 1), (4, 4), (2, 1), (6, 2), (4, 1), (7, 1), (14, 2))]
WIDTHS = [Shape(d_model=d, d_ff=104, vocab=17) for d in (8, 24, 96, 160, 568, 576, 1032, 2056)]
DEPTHS = [Shape(d_ff=d, tied=False) for d in (8, 24, 56, 1048, 2056)]
RAGGED = [  # sizes of Q and of K and V that fill no panel of 16 rows
    Shape(d_model=40, heads=3, kv_heads=3, head_dim=8, vocab=33),
    Shape(d_model=72, heads=5, kv_heads=1, head_dim=24, layers=2, tied=False, vocab=1),
    Shape(d_model=88, heads=9, kv_heads=3, head_dim=56, layers=2, d_ff=184),
]
FLOAT = [*HEADS, *GROUPS, *WIDTHS, *DEPTHS, *RAGGED]

QUANTISED = [
    Shape(d_model=96, heads=4, kv_heads=2, head_dim=8, d_ff=160),  # heads smaller than a group
    Shape(d_model=160, heads=4, kv_heads=4, head_dim=24, d_ff=32, tied=False),  # groups of 32 across heads
    Shape(d_model=96, heads=8, kv_heads=1, head_dim=40, d_ff=96, vocab=17),
    Shape(d_model=32, heads=12, kv_heads=4, head_dim=80, d_ff=288, layers=2),
    Shape(d_model=576, heads=9, kv_heads=3, head_dim=64, d_ff=1536),
    Shape(d_model=1120, heads=7, kv_heads=1, head_dim=96, d_ff=2080),
    Shape(d_model=64, heads=2, kv_heads=2, head_dim=112, d_ff=96, layers=2),
    Shape(d_model=64, heads=3, kv_heads=1, head_dim=256, d_ff=64),
]


def ids_for(shape: Shape, count: int = LENGTH) -> list[int]:
    return np.random.default_rng(1).integers(0, shape.vocab, count).tolist()


def engine(path: Path, ids: list[int], **options: object) -> NDArray[np.float32]:
    """The engine's logits of all positions."""
    runner = Runner.open(path, prompt_class="grouped", **options)  # type: ignore[arg-type]
    logits = runner.forward([(runner.sequence(), ids)], "all")
    runner.close()
    return logits


def assert_close(got: NDArray[np.float32], want: NDArray[np.float64], tolerance: float) -> None:
    """Both the worst difference against the largest logit, and the root mean square one against theirs."""
    difference = got - want
    assert np.abs(difference).max() <= tolerance * np.abs(want).max()
    assert np.sqrt(np.mean(difference**2)) <= tolerance * np.sqrt(np.mean(want**2))


def assert_one_function(path: Path, ids: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits from every tier, on 1 and 3 threads, whole and in pieces of 37 tokens."""
    results = set()
    for tier in TIERS:
        monkeypatch.setenv("SMEPILOT_ISA", tier)
        for threads, chunk in ((1, 512), (3, 37)):
            results.add(engine(path, ids, threads=threads, max_batch=chunk).tobytes())
    assert len(results) == 1


@pytest.mark.parametrize("shape", FLOAT, ids=str)
def test_float(shape: Shape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, ids = random_llama.write(tmp_path / "model.gguf", shape), ids_for(shape)
    assert_close(engine(path, ids, kv_dtype="f32"), Llama(path).logits(ids), TIGHT)
    assert_one_function(path, ids[:70], monkeypatch)


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
@pytest.mark.parametrize("shape", [HEADS[3], WIDTHS[4], DEPTHS[3], *RAGGED], ids=str)
def test_half(shape: Shape, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, ids = random_llama.write(tmp_path / "model.gguf", shape, dtype=dtype), ids_for(shape)
    assert_close(engine(path, ids, kv_dtype="f32"), Llama(path).logits(ids), TIGHT)
    assert_one_function(path, ids[:70], monkeypatch)


@pytest.mark.parametrize("dtype", ["Q4_0", "Q4_1", "Q8_0"])
@pytest.mark.parametrize("shape", QUANTISED, ids=str)
def test_quantised(shape: Shape, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, ids = random_llama.write(tmp_path / "model.gguf", shape, dtype=dtype), ids_for(shape)
    got = engine(path, ids, kv_dtype="f32")
    assert_close(got, Llama(path, int8=True).logits(ids), NOISE)
    assert_close(got, Llama(path).logits(ids), 2 * NOISE)
    assert_one_function(path, ids[:70], monkeypatch)


def rowwise(path: Path, ids: list[int], generated: int = 0, **options: object) -> NDArray[np.float32]:
    """The engine's logits of all positions, in the rowwise class but for the last `generated` tokens."""
    runner = open_rowwise(path, **options)
    handle, prompt = runner.sequence(), len(ids) - generated
    logits = [runner.forward([(handle, ids[:prompt])], "all")]
    logits += [runner.forward([(handle, ids[prompt:])], "all", role=Role.GENERATED)] if generated else []
    runner.close()
    return np.concatenate(logits)


@pytest.mark.parametrize("dtype", ["Q4_0", "Q4_1", "Q8_0"])
@pytest.mark.parametrize("shape", QUANTISED, ids=str)
def test_rowwise(shape: Shape, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, ids = random_llama.write(tmp_path / "model.gguf", shape, dtype=dtype), ids_for(shape)
    config = loader.load(path, cache_dir=None).config
    got = rowwise(path, ids, kv_dtype="f32")
    assert_close(got, Llama(path, int8=True, smoothing=smoothing(config)).logits(ids), NOISE)
    results = set()
    for tier in TIERS:
        monkeypatch.setenv("SMEPILOT_ISA", tier)
        for threads, chunk in ((1, 512), (3, 37)):
            results.add(rowwise(path, ids[:70], 9, threads=threads, max_batch=chunk).tobytes())
    assert len(results) == 1


@pytest.mark.parametrize("seed", range(6))
def test_mixed_formats(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Published files mix types; here every matrix of every layer has one of its own."""
    shape = Shape(d_model=96, heads=4, kv_heads=2, head_dim=(32, 40)[seed % 2], d_ff=160, layers=3, tied=seed % 3 > 0)
    random = np.random.default_rng(seed)
    drawn = random_llama.tensors(shape)
    matrices = [name for name, values in drawn.items() if values.ndim > 1]
    dtype = {name: str(random.choice(["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q8_0"])) for name in matrices}
    path, ids = random_llama.write(tmp_path / "model.gguf", shape, weights=drawn, dtype=dtype), ids_for(shape)
    assert_close(engine(path, ids, kv_dtype="f32"), Llama(path, int8=True).logits(ids), NOISE)
    config = loader.load(path, cache_dir=None).config
    assert_close(
        rowwise(path, ids, kv_dtype="f32"), Llama(path, int8=True, smoothing=smoothing(config)).logits(ids), NOISE
    )
    assert_one_function(path, ids[:70], monkeypatch)


@pytest.mark.parametrize("head_dim", [8, 64, 72])
def test_long_context(head_dim: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many blocks to merge, and decoding split over workers: 1,000 tokens, the last 40 one by one."""
    shape = Shape(head_dim=head_dim, heads=3, kv_heads=1, layers=2)
    path, ids = random_llama.write(tmp_path / "model.gguf", shape), ids_for(shape, 1000)
    want = Llama(path).logits(ids)
    for threads in (1, 2, 5):
        runner = Runner.open(path, threads=threads, kv_dtype="f32")
        handle = runner.sequence()
        rows = [runner.forward([(handle, ids[:960])], "all")]
        rows += [runner.forward([(handle, [token])]) for token in ids[960:]]
        runner.close()
        assert_close(np.concatenate(rows), want, TIGHT)


def test_float16_kv(tmp_path: Path) -> None:
    """Keys and values in float16 cost ten bits of the mantissa, no more."""
    shape = Shape(d_model=576, heads=9, kv_heads=3, head_dim=64, d_ff=1536, layers=2)
    path, ids = random_llama.write(tmp_path / "model.gguf", shape), ids_for(shape)
    want = Llama(path).logits(ids)
    got = engine(path, ids, kv_dtype="f16")
    assert_close(got, want, 1e-3)
    assert np.abs(got - want).max() > TIGHT * np.abs(want).max()  # they really were float16


SCALINGS = [
    {"type": "none"},
    {"type": "linear", "factor": 4.0},
    {"type": "linear", "factor": 2.5},
    {"type": "llama3", "factor": 8.0, "low": 1.0, "high": 4.0, "original": 128},
    {"type": "llama3", "factor": 32.0, "low": 1.0, "high": 4.0, "original": 8192},
]


@pytest.mark.parametrize("scaling", SCALINGS, ids=str)
def test_rope_scaling(scaling: dict[str, object], tmp_path: Path) -> None:
    shape = Shape(head_dim=64, rope_base=500000.0, scaling=scaling, layers=2)
    path, ids = random_llama.write(tmp_path / "model.gguf", shape), ids_for(shape, 300)
    assert_close(engine(path, ids, kv_dtype="f32"), Llama(path).logits(ids), TIGHT)


def test_rope_scaling_matters(tmp_path: Path) -> None:
    """Each scaling gives other logits, so the test above tells them apart."""
    logits = set()
    for i, scaling in enumerate(SCALINGS):
        shape = Shape(head_dim=64, rope_base=500000.0, scaling=scaling)
        path = random_llama.write(tmp_path / f"{i}.gguf", shape)
        logits.add(engine(path, ids_for(shape)).tobytes())
    assert len(logits) == len(SCALINGS)
