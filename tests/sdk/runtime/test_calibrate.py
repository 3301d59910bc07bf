# SPDX-License-Identifier: Apache-2.0
"""Calibration: the same bytes from every tier and thread count; what it decides; what it does where it cannot."""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from smepilot import _native
from smepilot.bench.synthetic import write_model
from smepilot.errors import InvalidParameterError
from smepilot.runtime import loader, rowwise
from smepilot.runtime.packed import open_packed, pack_in_memory
from smepilot.runtime.runner import Runner
from tests import fetch, random_llama
from tests.random_llama import Shape
from tests.sdk.bench.test_synthetic import TINY

KEPT = "rowwise.safetensors"
TIERS = [tier["name"] for tier in _native.tiers() if tier["built"] and tier["supported"]]
GOLDEN = json.loads((Path(__file__).parents[2] / "data" / "calibration.json").read_text())


def opened(path: Path, cache: Path | None, **options: Any) -> Runner:
    return Runner.open(path, cache_dir=cache, **{"threads": 1, **options})


def found(runner: Runner) -> rowwise.Rowwise:
    assert runner._model is not None
    assert runner._model.prompts is not None
    return runner._model.prompts


@pytest.fixture(autouse=True)
def no_warnings_but_expected(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A warning that no test has asked for is a failure."""
    yield
    assert not [record.message for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """The log; what was in it is forgotten in the end."""
    yield caplog
    caplog.clear()


# ---- the same bytes everywhere


@pytest.mark.parametrize("dtype", ["Q4_0", "Q4_1", "Q8_0"])
def test_every_tier_finds_the_same_bytes(dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And so does every machine: the digest is in tests/data, made by the scalar reference."""
    path, files = fetch.tiny_llama3_gguf(dtype), []
    for tier in TIERS:
        for threads in (1, 3):
            cache = tmp_path / f"{tier}-{threads}"
            monkeypatch.setenv("SMEPILOT_ISA", tier)
            opened(path, cache, threads=threads).close()
            files.append((cache / KEPT).read_bytes())
    assert len(set(files)) == 1
    assert content(tmp_path / f"{TIERS[0]}-1") == GOLDEN[dtype]


def test_golden(tmp_path: Path) -> None:
    """What this machine finds with all its tiers: emulated processors run this one."""
    opened(fetch.tiny_llama3_gguf("Q4_1"), tmp_path, threads=2).close()
    assert content(tmp_path) == GOLDEN["Q4_1"]


def content(cache: Path) -> str:
    """A digest of what calibration found; the file's own key depends on where and when the model file was made."""
    header = (cache / KEPT).read_bytes()
    length = int.from_bytes(header[:8], "little")
    about = json.loads(header[8 : 8 + length])["__metadata__"]
    facts = {name: about[name] for name in ("class_key", "grouped", "rowwise")}
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def test_what_is_kept_is_in_use(tmp_path: Path) -> None:
    """Prompts are computed by rowwise kernels, to the same bits when calibrated and when mapped."""
    path, logits = fetch.tiny_llama3_gguf("Q4_0"), []
    for _ in range(2):
        runner = opened(path, tmp_path, prompt_class="rowwise")
        assert runner.prompt_class == "rowwise"
        logits.append(runner.forward([(runner.sequence(), list(range(100)))], "all").tobytes())
        assert any("_q8r_q8r_" in name for name in runner.counts())
        runner.close()
    assert logits[0] == logits[1]
    runner = opened(path, tmp_path, prompt_class="grouped")
    assert runner.forward([(runner.sequence(), list(range(100)))], "all").tobytes() != logits[0]
    assert not any("_q8r_q8r_" in name for name in runner.counts())
    runner.close()


def test_class_keys(tmp_path: Path) -> None:
    keys = []
    for dtype, prompt_class in (("Q4_0", "grouped"), ("Q4_0", "rowwise"), ("Q8_0", "rowwise")):
        runner = opened(fetch.tiny_llama3_gguf(dtype), tmp_path / dtype, prompt_class=prompt_class)
        assert runner._model is not None
        keys.append(runner._model.class_key)
        runner.close()
    assert keys[0] == "grouped"
    assert keys[1].startswith("rowwise:")
    assert len(set(keys)) == 3


def test_without_a_folder(tmp_path: Path) -> None:
    one, two = opened(fetch.tiny_llama3_gguf("Q4_0"), None), opened(fetch.tiny_llama3_gguf("Q4_0"), tmp_path)
    assert found(one).key == found(two).key
    assert found(one).calibration == found(two).calibration
    assert found(one).file.path is None
    one.close()
    two.close()


# ---- what is decided


@pytest.mark.parametrize(
    ("rise", "default"), [(0.0, "rowwise"), (0.0099, "rowwise"), (0.0101, "grouped"), (2.0, "grouped")]
)
def test_one_per_cent_decides(rise: float, default: str) -> None:
    verdict = rowwise.verdict(rowwise.Finding({}, 3.0, 3.0 + math.log1p(rise)).metadata)
    assert verdict.default == default
    assert verdict.loss == pytest.approx(rise, abs=1e-9)
    assert verdict.reason is None


def test_the_default_is_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fetch.tiny_llama3_gguf("Q8_0")
    for budget, default in ((math.inf, "rowwise"), (-math.inf, "grouped")):
        monkeypatch.setattr(rowwise, "BUDGET", budget)
        runner = opened(path, tmp_path)
        assert runner.prompt_class == default
        assert found(runner).calibration.loss is not None
        runner.close()


def test_random_weights_are_not_measured(tmp_path: Path) -> None:
    write_model(tmp_path / "random.gguf", "tiny", TINY, "q4_0")
    runner = opened(tmp_path / "random.gguf", tmp_path / "cache")
    prompts = found(runner)
    assert runner.prompt_class == "rowwise"
    assert (prompts.calibration.loss, prompts.calibration.reason) == (None, None)
    assert all(facts.outliers == () for facts in prompts.facts.values())
    assert (np.frombuffer(prompts.file["layers.0.down"], np.float32) == 1).all()
    runner.close()


def test_a_float_model_has_one_class(tiny_llama3: Path, tmp_path: Path) -> None:
    runner = opened(tiny_llama3, tmp_path)
    assert runner.prompt_class == "grouped"
    runner.close()
    assert not (tmp_path / KEPT).exists()
    with pytest.raises(InvalidParameterError, match="no layer of this model is quantised"):
        opened(tiny_llama3, tmp_path, prompt_class="rowwise")


def test_layers_of_mixed_types(tmp_path: Path) -> None:
    """Float matrices have no rowwise form; the others keep theirs."""
    quantised = ("attn_q", "attn_k", "attn_output", "ffn_gate", "ffn_up")
    types = {f"blk.0.{part}.weight": "Q4_0" for part in quantised} | {"blk.0.attn_v.weight": "F16"}
    model = loader.load(random_llama.write(tmp_path / "m.gguf", Shape(), dtype=types), cache_dir=None)
    assert rowwise.readers(model.config, model.formats) == {
        "layers.0.qkv": ("blk.0.attn_q.weight", "blk.0.attn_k.weight"),
        "layers.0.o": ("blk.0.attn_output.weight",),
        "layers.0.gate_up": ("blk.0.ffn_gate.weight", "blk.0.ffn_up.weight"),
    }
    model.close()


# ---- where there is no rowwise form


@pytest.mark.parametrize("cache", [True, False])
def test_no_tokenizer(cache: bool, tmp_path: Path, warned: pytest.LogCaptureFixture) -> None:
    path = random_llama.write(tmp_path / "m.gguf", Shape(), dtype="Q8_0")
    folder = tmp_path / "cache" if cache else None
    runner = opened(path, folder)
    assert runner.prompt_class == "grouped"
    assert "no tokens" in str(found(runner).calibration.reason)
    assert "stay in the grouped class" in warned.text
    runner.close()
    warned.clear()
    with pytest.raises(InvalidParameterError, match=r"m.gguf: prompt_class is 'rowwise', but the built-in text"):
        opened(path, folder, prompt_class="rowwise")
    assert cache != bool(warned.text)  # what is kept is not found out again


@pytest.mark.parametrize(
    ("dtype", "block", "reason"),
    [
        ("Q8_0", b"\x00\x7c", "logits of the built-in text are no numbers"),  # an infinite scale
        # A scale of 4096 and a minimum of -61440, whose values cancel to zero: huge terms in a row of small values.
        ("Q4_1", b"\x00\x6c\x80\xfb" + b"\xff" * 16, "blk.1.ffn_down.weight has no rowwise form"),
    ],
)
def test_weights_without_a_rowwise_form(
    dtype: str, block: bytes, reason: str, tmp_path: Path, warned: pytest.LogCaptureFixture
) -> None:
    path = spoilt(fetch.tiny_llama3_gguf(dtype), tmp_path / "m.gguf", block)
    runner = opened(path, tmp_path / "cache")
    assert runner.prompt_class == "grouped"
    assert reason in str(found(runner).calibration.reason)
    assert reason in warned.text
    runner.close()


def spoilt(path: Path, target: Path, block: bytes) -> Path:
    """A copy of a model file in which the last block of one matrix begins with other bytes."""
    (tensor,) = (t for t in gguf.GGUFReader(path).tensors if t.name == "blk.1.ffn_down.weight")
    data = bytearray(path.read_bytes())
    at = int(tensor.data_offset) + int(tensor.n_bytes) - {"Q8_0": 34, "Q4_1": 20}[tensor.tensor_type.name]
    data[at : at + len(block)] = block
    target.write_bytes(data)
    return target


def test_unknown_class(tiny_llama3: Path) -> None:
    with pytest.raises(InvalidParameterError, match="'auto', 'grouped' or 'rowwise'"):
        opened(tiny_llama3, None, prompt_class="fast")


# ---- what a file may say


def test_a_file_must_fit_the_model(tmp_path: Path) -> None:
    runner = opened(fetch.tiny_llama3_gguf("Q4_0"), tmp_path)
    model, file = runner._model, found(runner).file
    assert model is not None
    tensors: dict[str, Any] = {name: np.frombuffer(file[name], np.float32) for name in file}
    good = {**tensors, "layers.0.qkv.outliers": np.array([1, 5], np.int32)}
    read(model, good)
    k = model.config.d_model
    for outliers in ([5, 1], [1, 1], [-1, 3], [2, k], list(range(65)), [k - 1, 2**31 - 1]):
        with pytest.raises(ValueError, match="outlier columns"):
            read(model, {**good, "layers.0.qkv.outliers": np.array(outliers, np.int32)})
    for name in ("layers.0.gate_up", "blk.1.attn_output.weight"):
        with pytest.raises(ValueError, match=name):
            read(model, {**good, name: tensors[name][:-1]})
        with pytest.raises(ValueError, match=name):
            read(model, {other: array for other, array in good.items() if other != name})
    runner.close()


def read(model: Any, tensors: dict[str, Any]) -> None:
    finding = rowwise.Finding(tensors, 1.0, 1.0)
    with pack_in_memory(finding.metadata, finding.items()) as file:
        rowwise.read(file, model.config, model.weights)


@pytest.mark.parametrize("about", [{"grouped": "x", "rowwise": "1"}, {"grouped": "nan", "rowwise": "1"}])
def test_metadata_that_says_nothing(about: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"."):
        rowwise.verdict(about)


def test_an_open_file_is_what_was_found(tmp_path: Path) -> None:
    runner = opened(fetch.tiny_llama3_gguf("Q4_0"), tmp_path)
    packed = found(runner).file
    assert packed.path == tmp_path / KEPT
    assert open_packed(tmp_path / KEPT, "another key") is None
    runner.close()
