# SPDX-License-Identifier: Apache-2.0
"""Sound GGUF files: what a writer of the format put in comes out, without a copy, and closing leaves nothing open."""

from __future__ import annotations

import gc
import hashlib
import os
import time
from pathlib import Path

import gguf
import numpy as np
import pytest

from smepilot.errors import ClosedError, FileFormatError, UnsupportedModelError
from smepilot.weights.dtypes import BY_NUMBER, SUPPORTED
from smepilot.weights.gguf import open_gguf
from smepilot.weights.metadata import GgufStringArray
from smepilot.weights.source import WeightSource, require_supported
from tests.sdk.weights import gguf_bytes

QUANTS = gguf.GGMLQuantizationType


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    path = tmp_path / "sound.gguf"
    path.write_bytes(gguf_bytes.sound())
    return path


def test_every_value_type(sound: Path) -> None:
    with open_gguf(sound) as file:
        scalars = {name: value for name, value in file.metadata.items() if not name.startswith("l.")}
        assert scalars == {
            "general.architecture": "llama",
            "a.u8": 255,
            "a.i8": -1,
            "a.u16": 65535,
            "a.i16": -2,
            "a.u32": 4_000_000_000,
            "a.i32": -3,
            "a.f32": 0.5,
            "a.bool": True,
            "a.u64": 2**64 - 1,
            "a.i64": -(2**63),
            "a.f64": 1e300,
        }
        assert list(file.metadata["l.tokens"]) == ["a", "", "Ġü\0"]
        assert len(file.metadata["l.empty"]) == 0
        scores, flags = file.metadata["l.scores"], file.metadata["l.flags"]
        assert (scores.dtype, scores.tolist()) == (np.float32, [-1.0, 0.0, 1.0])
        assert (flags.dtype, flags.tolist()) == (np.bool_, [False, True])
        assert not scores.flags.writeable
        assert not flags.flags.writeable
        numbers, strings = file.metadata["l.nested"]
        assert (numbers.tolist(), list(strings)) == ([7], ["x"])


def test_tensor_table(sound: Path) -> None:
    with open_gguf(sound) as file:
        facts = [(t.name, t.dtype, t.shape, t.nbytes, t.offset - file.data_offset) for t in file.tensors.values()]
        assert facts == [
            ("a.weight", "F32", (2, 4), 32, 0),
            ("b.weight", "Q4_0", (2, 1, 32), 36, 32),
            ("c.weight", "Q8_0", (32,), 34, 96),
            ("d.weight", "F16", (1,), 2, 160),
        ]
        assert bytes(file.data("b.weight")) == bytes(range(32, 68))
        assert file.data("b.weight").readonly
        raw = sound.read_bytes()
        assert file.fingerprint() == hashlib.sha256(raw[: file.data_offset]).hexdigest()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("alignment", [8, 32, 4096])
def test_versions_and_alignments(tmp_path: Path, version: int, alignment: int) -> None:
    path = tmp_path / "a.gguf"
    stated = gguf_bytes.key("general.alignment", gguf_bytes.U32, gguf_bytes.u32(alignment))
    tensors = [gguf_bytes.tensor("x", [2]), gguf_bytes.tensor("y", [1], offset=alignment)]
    data = bytes(range(8)) + bytes(alignment - 8) + b"tail"
    path.write_bytes(gguf_bytes.gguf([stated], tensors, data, version=version, alignment=alignment))
    with open_gguf(path) as file:
        assert (file.version, file.alignment) == (version, alignment)
        assert bytes(file.data("x")) == bytes(range(8))
        assert bytes(file.data("y")) == b"tail"


@pytest.mark.parametrize("kind", [QUANTS.F32, QUANTS.F16, QUANTS.BF16, QUANTS.Q8_0, QUANTS.Q4_0, QUANTS.Q4_1])
def test_agrees_with_the_reference_writer(tmp_path: Path, kind: gguf.GGMLQuantizationType) -> None:
    path = tmp_path / "ÿ-модель-模型.gguf"
    values = np.random.default_rng(int(kind)).standard_normal((6, 96), dtype=np.float32)
    stored = gguf.quants.quantize(values, kind)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_token_list(["a", "ÿ", "模"])
    writer.add_token_scores([0.0, 1.5, -2.0])
    writer.add_tensor("w", stored, raw_dtype=kind)
    writer.add_tensor("norm", values[0])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with open_gguf(path) as file:
        require_supported(file)
        assert (file.tensors["w"].dtype, file.tensors["w"].shape) == (kind.name, values.shape)
        assert bytes(file.data("w")) == stored.tobytes()
        assert bytes(file.data("norm")) == values[0].tobytes()
        assert list(file.metadata["tokenizer.ggml.tokens"]) == ["a", "ÿ", "模"]
        assert file.metadata["tokenizer.ggml.scores"].tolist() == [0.0, 1.5, -2.0]


def test_block_sizes_are_those_of_the_reference() -> None:
    reference = {int(kind): (kind.name, *gguf.GGML_QUANT_SIZES[kind]) for kind in QUANTS}
    # The package still gives the size that a Q8_1 block had before its scale and sum became float16.
    reference[9] = ("Q8_1", 32, 36)
    withdrawn = {31, 32, 33, 36, 37, 38}
    assert {number: tuple(dtype) for number, dtype in BY_NUMBER.items() if number not in withdrawn} == reference
    assert {dtype.name for dtype in BY_NUMBER.values()} >= SUPPORTED


def test_unsupported_type_is_named(tmp_path: Path) -> None:
    path = tmp_path / "k.gguf"
    tensors = [gguf_bytes.tensor("blk.0.w", [256], gguf_bytes.T_Q4_K), gguf_bytes.tensor("n", [1], offset=160)]
    path.write_bytes(gguf_bytes.gguf([], tensors, bytes(164)))
    with open_gguf(path) as file, pytest.raises(UnsupportedModelError, match=r"k\.gguf: tensor 'blk\.0\.w'.*Q4_K"):
        require_supported(file)


def test_missing_tensor_is_named(sound: Path) -> None:
    with open_gguf(sound) as file, pytest.raises(FileFormatError, match="'nowhere' is missing"):
        file.data("nowhere")


def test_vocabulary_without_tensors(tmp_path: Path) -> None:
    path = tmp_path / "vocab.gguf"
    tokens = gguf_bytes.array(gguf_bytes.STRING, 1, gguf_bytes.string("odd"))
    path.write_bytes(gguf_bytes.gguf([gguf_bytes.key("t", gguf_bytes.ARRAY, tokens)], alignment=1))
    with open_gguf(path) as file:
        assert (len(file.tensors), list(file.metadata["t"])) == (0, ["odd"])
        assert file.fingerprint() == hashlib.sha256(path.read_bytes()).hexdigest()


def test_string_array_is_a_sequence(tmp_path: Path) -> None:
    path = tmp_path / "s.gguf"
    raw = [b"zero", b"\xff\xfe", b"zwei"]
    payload = gguf_bytes.array(gguf_bytes.STRING, 3, b"".join(map(gguf_bytes.string, raw)))
    path.write_bytes(gguf_bytes.gguf([gguf_bytes.key("t", gguf_bytes.ARRAY, payload)]))
    with open_gguf(path) as file:
        tokens = file.metadata["t"]
        assert isinstance(tokens, GgufStringArray)
        assert (tokens[0], tokens[-1], tokens[::2], tokens.raw(1)) == ("zero", "zwei", ["zero", "zwei"], raw[1])
        assert repr(tokens) == "<3 strings: b'zero', b'\\xff\\xfe', b'zwei'>"
        for index in (3, -4):
            with pytest.raises(IndexError):
                tokens.raw(index)
        with pytest.raises(FileFormatError, match=r"key 't': element 1 .*not UTF-8"):
            tokens[1]
        with pytest.raises(FileFormatError, match=r"key 't': element 1 .*not UTF-8"):
            list(tokens)
    with pytest.raises(ClosedError, match="after the file was closed"):
        tokens[0]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts open files in /proc")
def test_close_leaves_nothing_open_and_views_alive(sound: Path) -> None:
    def targets() -> list[str]:
        links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
        return [os.readlink(link) for link in links if os.path.lexists(link)]

    file: WeightSource = open_gguf(sound)
    numbers = np.frombuffer(file.data("a.weight"), np.uint8)
    file.close()
    file.close()
    assert numbers.tolist() == list(range(32))
    with pytest.raises(ClosedError, match=r"'a\.weight'"):
        file.data("a.weight")
    with pytest.raises(ClosedError):
        file.fingerprint()
    del numbers
    gc.collect()
    assert str(sound) not in targets()


def test_large_vocabulary_opens_fast(tmp_path: Path) -> None:
    path = tmp_path / "big.gguf"
    many = b"".join(gguf_bytes.string(f"token{i}") for i in range(150_000))
    payload = gguf_bytes.array(gguf_bytes.STRING, 150_000, many)
    keys = [gguf_bytes.key(name, gguf_bytes.ARRAY, payload) for name in ("tokens", "merges")]
    path.write_bytes(gguf_bytes.gguf(keys))
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        file = open_gguf(path)
        seconds.append(time.perf_counter() - start)
        assert file.metadata["merges"][149_999] == "token149999"
        file.close()
    assert min(seconds) < 0.150


def test_real_model(smollm2: Path) -> None:
    with open_gguf(smollm2) as file:
        require_supported(file)
        assert file.data_offset == 1_785_664
        kinds = [tensor.dtype for tensor in file.tensors.values()]
        assert {kind: kinds.count(kind) for kind in kinds} == {"Q8_0": 1, "F32": 61, "Q4_1": 210}
        assert file.tensors["token_embd.weight"].shape == (49152, 576)
        assert len(file.metadata["tokenizer.ggml.merges"]) == 48_900
        reference = {tensor.name: tensor for tensor in gguf.GGUFReader(smollm2).tensors}
        for name in ("token_embd.weight", "blk.29.ffn_down.weight", "output_norm.weight"):
            assert bytes(file.data(name)) == reference[name].data.tobytes()
