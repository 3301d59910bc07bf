# SPDX-License-Identifier: Apache-2.0
"""From a file to packed weights: every row where it belongs, faults named, and a cache that only ever helps."""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from smepilot import _native
from smepilot.errors import FileFormatError, ModelError, UnsupportedModelError
from smepilot.runtime import loader
from smepilot.runtime.runner import Runner
from tests import random_llama
from tests.random_llama import Shape, Tensors
from tests.sdk.runtime.golden import FORMATS

SHAPE = Shape(layers=2)
IDS = list(range(0, 279, 3))
PACKED = "weights.safetensors"


def write(path: Path, change: Callable[[Tensors], Any] = lambda _: None, **options: Any) -> Path:
    """Writes a model of SHAPE after `change` has had its way with the tensors."""
    weights = random_llama.tensors(SHAPE)
    change(weights)
    return random_llama.write(path, SHAPE, weights=weights, **options)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write(tmp_path / "модель.gguf")


def logits(path: Path, **options: Any) -> bytes:
    runner = Runner.open(path, threads=1, **options)
    rows = runner.forward([(runner.sequence(), IDS)], "all").tobytes()
    runner.close()
    return rows


# ---- what is packed


def packed_rows(model: loader.Model, name: str) -> NDArray[np.float32]:
    """The matrix as the kernels see it."""
    _, dtype, k, rows = model.weights[name]
    return np.stack([_native.unpack_row(dtype, k, model.packed[name], row) for row in range(rows)])


def halves(values: NDArray[np.float32], head_dim: int) -> NDArray[np.float32]:
    """Rows of each head: all even ones, then all odd ones."""
    heads = values.reshape(-1, head_dim, values.shape[1])
    return np.concatenate([heads[:, 0::2], heads[:, 1::2]], axis=1).reshape(values.shape)


@pytest.mark.parametrize("dtype", FORMATS)
def test_packed_weights_are_the_files(dtype: str, tmp_path: Path) -> None:
    """Every value of every tensor, rows of Q and K in the order of halves."""
    path = random_llama.write(tmp_path / "model.gguf", Shape(head_dim=24, kv_heads=4, tied=False), dtype=dtype)
    model = loader.load(path, cache_dir=None)
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    assert set(model.packed) == set(tensors)
    for name, tensor in tensors.items():
        if tensor.n_elements == tensor.shape[0]:
            assert bytes(model.packed[name]) == tensor.data.tobytes()
            continue
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        want = halves(values, 24) if "attn_q" in name or "attn_k" in name else values
        assert np.array_equal(packed_rows(model, name), want), name
    model.close()


# ---- faults of the file


@pytest.mark.parametrize("name", [name for name in random_llama.tensors(SHAPE) if not name.startswith("blk.0")])
def test_missing_tensor(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", lambda weights: weights.pop(name))
    with pytest.raises(FileFormatError, match=f"model.gguf: tensor '?{name}'? is missing"):
        loader.load(path, cache_dir=None)


@pytest.mark.parametrize("name", ["token_embd.weight", "blk.1.attn_k.weight", "blk.1.ffn_down.weight"])
def test_wrong_shape_of_a_matrix(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", lambda w: w.update({name: np.zeros((24, 56), np.float32)}))
    with pytest.raises(FileFormatError, match=rf"tensor '{name}' has shape \(24, 56\), expected \(\d+, \d+\)"):
        loader.load(path, cache_dir=None)


def test_wrong_shape_of_a_norm(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", lambda w: w.update({"output_norm.weight": np.zeros(63, np.float32)}))
    with pytest.raises(FileFormatError, match=r"tensor 'output_norm.weight' has shape \(63,\), expected \(64,\)"):
        loader.load(path, cache_dir=None)


def test_vector_in_place_of_a_matrix(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", lambda w: w.update({"token_embd.weight": np.zeros(64, np.float32)}))
    with pytest.raises(FileFormatError, match=r"tensor 'token_embd.weight' has shape"):
        loader.load(path, cache_dir=None)


def test_extra_tensor(tmp_path: Path) -> None:
    """A bias that the architecture does not have would be left out silently."""
    path = write(tmp_path / "model.gguf", lambda w: w.update({"blk.1.attn_q.bias": np.zeros(64, np.float32)}))
    with pytest.raises(UnsupportedModelError, match=r"tensor 'blk.1.attn_q.bias' is not part of architecture 'llama'"):
        loader.load(path, cache_dir=None)


def test_unsupported_type(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", dtype={"blk.1.ffn_up.weight": "Q5_0"})
    with pytest.raises(UnsupportedModelError, match=r"tensor 'blk.1.ffn_up.weight' has type Q5_0"):
        loader.load(path, cache_dir=None)


def test_norm_of_another_type(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", dtype={"blk.0.ffn_norm.weight": "F16"})
    with pytest.raises(UnsupportedModelError, match=r"tensor 'blk.0.ffn_norm.weight' has type F16, expected F32"):
        loader.load(path, cache_dir=None)


@pytest.mark.parametrize(
    ("factors", "dtype"),
    [
        (np.ones(7, np.float32), "F32"),
        (np.ones(9, np.float32), "F32"),
        (np.ones((2, 8), np.float32), "F32"),
        (np.ones(8, np.float32), "F16"),
        (np.zeros(8, np.float32), "F32"),
        (np.full(8, np.nan, np.float32), "F32"),
        (np.full(8, -1.0, np.float32), "F32"),
    ],
)
def test_wrong_rope_factors(factors: NDArray[np.float32], dtype: str, tmp_path: Path) -> None:
    name = "rope_freqs.weight"
    path = write(tmp_path / "model.gguf", lambda w: w.update({name: factors}), dtype={name: dtype})
    with pytest.raises(FileFormatError, match=r"tensor '?rope_freqs.weight'?"):
        loader.load(path, cache_dir=None)


@pytest.mark.parametrize(
    "extra",
    [
        {"llama.block_count": 1 << 23},
        {"llama.attention.head_count": 1 << 20, "llama.attention.head_count_kv": 1 << 20},
        {"llama.feed_forward_length": (1 << 24) - 8},
        {"llama.attention.key_length": 1 << 40, "llama.attention.value_length": 1 << 40},
    ],
    ids=str,
)
def test_metadata_that_claims_too_much(extra: dict[str, int], tmp_path: Path) -> None:
    """Sizes are compared with the tensors before anything is allocated or listed by them."""
    path = random_llama.write(tmp_path / "model.gguf", SHAPE, extra=extra)
    with pytest.raises(ModelError, match=r"model.gguf"):
        loader.load(path, cache_dir=None)


# ---- the cache


def test_second_open_packs_nothing(model: Path, tmp_path: Path) -> None:
    cache, steps = tmp_path / "cache", []
    want = logits(model)
    assert logits(model, cache_dir=cache, on_progress=steps.append) == want
    assert steps == sorted(steps)
    assert math.isclose(steps[-1], 1.0)
    before = (cache / PACKED).stat()
    steps.clear()
    assert logits(model, cache_dir=cache, on_progress=steps.append) == want
    after = (cache / PACKED).stat()
    assert not steps
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_without_a_folder_nothing_is_written(model: Path, tmp_path: Path) -> None:
    steps: list[float] = []
    logits(model, on_progress=steps.append)
    assert math.isclose(steps[-1], 1.0)
    assert [path.name for path in tmp_path.iterdir()] == [model.name]


def test_stale_file_is_packed_again(model: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = logits(model, cache_dir=cache)
    random_llama.write(model, SHAPE, seed=1)
    second = logits(model, cache_dir=cache)
    assert second == logits(model)
    assert second != first


def test_touched_source_is_packed_again(model: Path, tmp_path: Path) -> None:
    """Another time of modification may mean other weights under the same header."""
    cache, steps = tmp_path / "cache", []
    logits(model, cache_dir=cache)
    os.utime(model, ns=(1, 1))
    logits(model, cache_dir=cache, on_progress=steps.append)
    assert steps


def truncate(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 64)


def scribble(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(300)
        file.write(b"?")


@pytest.mark.parametrize(
    "damage", [truncate, scribble, lambda p: p.write_bytes(b""), lambda p: p.write_bytes(b"x" * 999)]
)
def test_damaged_file_is_packed_again(
    damage: Callable[[Path], Any], model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = tmp_path / "cache"
    want = logits(model, cache_dir=cache)
    damage(cache / PACKED)
    assert logits(model, cache_dir=cache) == want
    assert any(record.levelno == logging.WARNING and PACKED in record.message for record in caplog.records)
    caplog.clear()
    assert logits(model, cache_dir=cache) == want
    assert not caplog.records


def test_folder_that_cannot_be_written(model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    assert logits(model, cache_dir=tmp_path / "file" / "cache") == logits(model)
    assert caplog.records[-1].levelno == logging.WARNING
    assert "packing into memory" in caplog.records[-1].message


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write to every folder")
def test_read_only_folder(model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o555)
    assert logits(model, cache_dir=cache) == logits(model)
    assert "packing into memory" in caplog.text


def test_several_openers_at_once(model: Path, tmp_path: Path) -> None:
    """One packs, the others wait and map; all compute the same."""
    cache, results, packers = tmp_path / "cache", [], []

    def one() -> None:
        results.append(logits(model, cache_dir=cache, on_progress=lambda _: packers.append(threading.get_ident())))

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert len(set(results)) == 1
    assert len(set(packers)) == 1
