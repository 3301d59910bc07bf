# SPDX-License-Identifier: Apache-2.0
"""Random models: read back by the `gguf` package, whole or not there at all, the same every time."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest

from smepilot.bench import gguf_writer
from smepilot.bench.roofline import work
from smepilot.bench.shapes import SHAPES, Shape, shape_named
from smepilot.bench.synthetic import FILE_TYPES, synthetic, write_model
from smepilot.errors import DiskFullError, InvalidParameterError

TINY = Shape("llama", 2, 64, 96, 4, 2, 16, 300, 512, 5e5, llama3_factor=32.0)
TINY_QWEN3 = Shape("qwen3", 1, 64, 96, 2, 1, 64, 300, 512, 1e6, tied=False, qk_norm=True)


def field(reader: gguf.GGUFReader, key: str) -> object:
    entry = reader.get_field(key)
    assert entry is not None, key
    return entry.contents()


@pytest.mark.parametrize("quant", FILE_TYPES)
def test_the_gguf_package_reads_it(tmp_path: Path, quant: str) -> None:
    path = tmp_path / "tiny.gguf"
    write_model(path, "tiny", TINY, quant)
    reader = gguf.GGUFReader(path)
    assert field(reader, "general.architecture") == "llama"
    assert field(reader, "llama.attention.head_count_kv") == 2
    assert len(field(reader, "tokenizer.ggml.tokens")) == 300  # type: ignore[arg-type]
    assert field(reader, "tokenizer.ggml.merges") == ["Ġ t"]
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    assert len(tensors) == 1 + 2 * 9 + 2
    for name, rows, columns in (("blk.1.ffn_down", 64, 96), ("blk.0.attn_k", 32, 64), ("token_embd", 300, 64)):
        tensor = tensors[f"{name}.weight"]
        weights = gguf.dequantize(tensor.data, tensor.tensor_type)
        assert weights.shape == (rows, columns)
        assert np.isfinite(weights).all()
        assert abs(float(weights.mean())) < 0.1 * columns**-0.5
        assert 0.9 < float(weights.std()) * columns**0.5 < 1.2


def test_a_four_bit_model_keeps_its_embedding_in_eight() -> None:
    assert [t.dtype for t in _tensors(TINY, "q4_0") if t.name == "token_embd.weight"] == ["Q8_0"]
    assert [t.dtype for t in _tensors(TINY, "bf16") if t.name == "token_embd.weight"] == ["BF16"]


def _tensors(shape: Shape, quant: str) -> list[gguf_writer.Planned]:
    from smepilot.bench.synthetic import _tensors

    return _tensors(shape, quant)


def test_untied_output_and_head_norms(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    write_model(path, "tiny", TINY_QWEN3, "q8_0")
    names = {tensor.name for tensor in gguf.GGUFReader(path).tensors}
    assert {"output.weight", "blk.0.attn_q_norm.weight", "blk.0.attn_k_norm.weight"} <= names
    assert "rope_freqs.weight" not in names


def test_rope_factors_are_those_of_llama_3() -> None:
    factors = SHAPES["llama-3.2-1b"].rope_factors()
    assert factors is not None
    assert factors[0] == 1.0
    assert factors[-1] == 32.0
    assert factors == sorted(factors)
    assert 1.0 < factors[16] < 32.0  # the ramp: wavelength 4443 of 2048..8192
    assert SHAPES["smollm2-135m"].rope_factors() is None


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_model(tmp_path / f"{name}.gguf", "tiny", TINY, "q4_1")
    assert (tmp_path / "a.gguf").read_bytes() == (tmp_path / "b.gguf").read_bytes()


def test_it_is_written_once_with_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SHAPES, "tiny", TINY)
    seen: list[tuple[int, int]] = []
    first = synthetic("tiny", "q4_0", tmp_path, lambda *step: seen.append(step))
    assert seen[-1][0] == seen[-1][1] == sum(tensor.nbytes for tensor in _tensors(TINY, "q4_0"))
    before = len(seen)
    assert synthetic("tiny", "q4_0", tmp_path, lambda *step: seen.append(step)) == first
    assert len(seen) == before


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_model(tmp_path / "tiny.gguf", "tiny", TINY, "q4_0", interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_noticed_beforehand(tmp_path: Path) -> None:
    vast = Shape("llama", 1, 1 << 20, 1 << 23, 4, 2, 64, 300, 512, 1e5)
    with pytest.raises(DiskFullError, match="MiB are free"):
        write_model(tmp_path / "vast.gguf", "vast", vast, "f16")
    assert list(tmp_path.iterdir()) == []


def test_unknown_names_are_answered_with_the_known(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match=r"llama-3\.2-1b"):
        shape_named("llama-9")
    with pytest.raises(InvalidParameterError, match="q4_0"):
        synthetic("llama-3.2-1b", "q3_k", tmp_path)


def test_work_counts_what_a_step_reads(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    write_model(path, "tiny", TINY, "q4_0")
    cost = work(path)
    assert cost.layer_params == 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 96)
    assert cost.params == cost.layer_params + 300 * 64 + 5 * 64 + 8
    assert cost.step_bytes == cost.size == cost.layer_params // 32 * 18 + 300 * 2 * 34 + (5 * 64 + 8) * 4
    assert cost.position_bytes == 2 * 2 * 2 * 2 * 16
    assert cost.quantised
    write_model(path, "tiny", TINY_QWEN3, "q8_0")
    untied = work(path)
    assert untied.size - untied.step_bytes == 300 * 2 * 34
