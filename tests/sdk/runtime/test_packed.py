# SPDX-License-Identifier: Apache-2.0
"""Packed files: what is filled in comes out, aligned, and readable by others; what has changed is noticed."""

from __future__ import annotations

import gc
import json
import logging
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from smepilot.errors import ClosedError, StoreError, VerifyError
from smepilot.runtime.packed import (
    Item,
    PackedFile,
    open_packed,
    pack_in_memory,
    source_key,
    verify,
    write_packed,
)
from smepilot.weights.gguf import open_gguf
from tests.sdk.weights import gguf_bytes

CONTENT = {"blk.0.qkv": bytes(range(256)), "blk.0.norm": b"\1\2\3", "имя": b"x" * 64, "last": b"y" * 100_001}
METADATA = {"layout": "3", "source": "ÿ.gguf"}


def copying(content: bytes) -> Callable[[memoryview], None]:
    """Return what fills a tensor with `content`, having checked that it is given exactly so many zeros."""

    def fill(out: memoryview) -> None:
        assert bytes(out) == bytes(len(content))
        out[:] = content

    return fill


def items(content: dict[str, bytes] = CONTENT) -> list[Item]:
    return [(name, len(value), copying(value)) for name, value in content.items()]


def refuse(out: memoryview) -> None:
    raise AssertionError("this must not be packed")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a packed file with CONTENT, key "k"."""
    target = tmp_path / "модель" / "weights.safetensors"
    write_packed(target, "k", METADATA, items()).close()
    return target


def check(packed: PackedFile) -> None:
    """Check that CONTENT is there, read-only, on cache lines."""
    assert {name: bytes(view) for name, view in packed.items()} == CONTENT
    assert list(packed) == list(CONTENT)
    assert packed.metadata == METADATA
    for name, view in packed.items():
        assert view.readonly
        assert packed.address(name) % 64 == 0
        assert packed.address(name) == np.frombuffer(view, np.uint8).ctypes.data


def test_round_trip(path: Path) -> None:
    packed = open_packed(path, "k")
    assert packed is not None
    with packed:
        check(packed)
        assert packed.path == path
    verify(path)
    assert sorted(file.name for file in path.parent.iterdir()) in (
        ["weights.safetensors"],
        ["weights.safetensors", "weights.safetensors.lock"],
    )


def test_in_memory() -> None:
    with pack_in_memory(METADATA, items()) as packed:
        check(packed)
        assert packed.path is None


def test_others_can_read_it(path: Path) -> None:
    arrays = safetensors.numpy.load_file(path)
    assert {name: bytes(array[: len(CONTENT[name])]) for name, array in arrays.items()} == CONTENT
    for name, array in arrays.items():
        assert array.dtype == np.uint8
        assert array.size == -(-len(CONTENT[name]) // 64) * 64
        assert not array[len(CONTENT[name]) :].any()
    with safetensors.safe_open(path, framework="numpy") as file:
        assert METADATA.items() <= file.metadata().items()


@settings(max_examples=25)  # each waits for the disk
@given(st.dictionaries(st.text(min_size=1).filter(lambda name: name != "__metadata__"), st.binary(min_size=1)))
def test_any_names_and_sizes(tmp_path_factory: pytest.TempPathFactory, content: dict[str, bytes]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    path.unlink(missing_ok=True)
    with write_packed(path, "k", {}, items(content)) as packed:
        assert {name: bytes(view) for name, view in packed.items()} == content
    verify(path)


def test_progress_ends_at_the_whole(tmp_path: Path) -> None:
    heard: list[tuple[int, int]] = []
    path = tmp_path / "p"
    write_packed(path, "k", {}, items(), lambda done, total: heard.append((done, total))).close()
    size = path.stat().st_size
    assert len(heard) == len(CONTENT)
    assert heard == sorted(heard)
    assert heard[-1] == (size, size)
    heard.clear()
    verify(path, lambda done, total: heard.append((done, total)))
    assert heard[-1] == (size, size)


def test_fresh_file_is_not_packed_again(path: Path) -> None:
    with write_packed(path, "k", METADATA, [(name, len(value), refuse) for name, value in CONTENT.items()]) as packed:
        check(packed)


def test_missing_and_stale(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert open_packed(path.with_name("nothing"), "k") is None
    assert open_packed(path, "another") is None
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    with write_packed(path, "another", METADATA, items({"new": b"content"})) as packed:
        assert bytes(packed["new"]) == b"content"
    assert open_packed(path, "k") is None


def test_replacing_leaves_open_ones_alone(path: Path) -> None:
    old = open_packed(path, "k")
    assert old is not None
    write_packed(path, "another", {}, items({"new": b"content"})).close()
    with old:
        check(old)


def damages(raw: bytes) -> dict[str, bytes]:
    """Return damaged versions of a packed file that a start must notice."""
    header = 8 + struct.unpack_from("<Q", raw)[0]
    return {
        "empty": b"",
        "no room for a header": raw[:100],
        "header cut": raw[: header - 1],
        "tail cut": raw[:-1],
        "page cut": raw[:-4096],
        "longer": raw + b"\0",
        "header length": struct.pack("<Q", 2**64 - 1) + raw[8:],
        "header zero-filled": raw[:8] + bytes(header - 8) + raw[header:],
        "offsets changed": raw.replace(b'"data_offsets":[0,256]', b'"data_offsets":[0,512]', 1),
        "key changed": raw.replace(b'"packed.key":"k"', b'"packed.key":"j"', 1),
        "other safetensors": safetensors.numpy.save({"a": np.zeros(64, np.uint8)}),
    }


@pytest.mark.parametrize("damage", damages(bytes(5000)))
def test_damage_is_noticed_and_repaired(path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    path.write_bytes(damages(path.read_bytes())[damage])
    assert open_packed(path, "k") is None
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert str(path) in record.getMessage()
    with pytest.raises(VerifyError, match="delete it"):
        verify(path)
    with write_packed(path, "k", METADATA, items()) as packed:
        check(packed)


def test_every_byte_of_the_header(path: Path) -> None:
    raw = path.read_bytes()
    header = 8 + struct.unpack_from("<Q", raw)[0]
    whole_digest = raw.index(b'"packed.digest":"') + len(b'"packed.digest":"') + 64
    for position in range(header):
        path.write_bytes(raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :])
        if not whole_digest <= position < whole_digest + 64:
            assert open_packed(path, "k") is None, position
        with pytest.raises(VerifyError):
            verify(path)


@pytest.mark.parametrize("position", [-1, -100_000, "padding"])
def test_verify_notices_what_a_start_does_not(path: Path, position: int | str) -> None:
    raw = bytearray(path.read_bytes())
    header = 8 + struct.unpack_from("<Q", raw)[0]
    raw[header + 256 + 10 if position == "padding" else int(position)] ^= 1
    path.write_bytes(raw)
    packed = open_packed(path, "k")
    assert packed is not None
    packed.close()
    with pytest.raises(VerifyError, match="changed since packing"):
        verify(path)


def test_sound_digest_does_not_excuse_a_wrong_table(tmp_path: Path) -> None:
    """A header made by someone else, digest and all, is still checked against the file."""
    from smepilot.runtime import packed_header

    header = packed_header.build("k", {}, [("a", 64), ("b", 64)])
    for old, new in ((b"[64,128]", b"[0,64]  "), (b"[64,128]", b"[64,999]"), (rb"\"b\":64", rb"\"b\":99")):
        table = json.loads(header.raw[8:].replace(old, new, 1))
        raw = json.dumps(table, separators=(",", ":")).encode()
        raw += b" " * (-(len(raw) + 8) % 64)
        forged = packed_header.Header(struct.pack("<Q", len(raw)) + raw, "k", {}, {}, 0)
        content = bytearray(forged.raw + bytes(128))
        packed_header.seal(memoryview(content), forged, "0" * 64)
        (tmp_path / "p").write_bytes(content)
        assert open_packed(tmp_path / "p", "k") is None


def test_filler_that_fails(tmp_path: Path) -> None:
    def fail(out: memoryview) -> None:
        kept.append(np.frombuffer(out, np.uint8))  # what a traceback keeps alive must not hide the error
        raise KeyboardInterrupt

    kept: list[object] = []
    path = tmp_path / "p"
    with pytest.raises(KeyboardInterrupt):
        write_packed(path, "k", {}, [*items(), ("bad", 10, fail)])
    assert not [file for file in tmp_path.iterdir() if file.suffix != ".lock"]
    kept.clear()
    write_packed(path, "k", METADATA, items()).close()


def test_names_must_be_distinct(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="distinct names"):
        write_packed(tmp_path / "p", "k", {}, [("a", 1, refuse), ("a", 1, refuse)])


def test_not_a_folder_to_write_to(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="SMEPILOT_HOME"):
        write_packed(tmp_path / "file" / "p", "k", {}, items())


def test_closed(path: Path) -> None:
    packed = open_packed(path, "k")
    assert packed is not None
    view = packed["last"]
    packed.close()
    packed.close()
    assert bytes(view) == CONTENT["last"]
    with pytest.raises(ClosedError, match="'last' was read after close"):
        packed["last"]
    with pytest.raises(ClosedError):
        packed.address("last")
    del view
    gc.collect()
    if os.path.isdir("/proc/self/fd"):
        assert str(path) not in {os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")}


def test_opening_is_cheap(tmp_path: Path) -> None:
    path = tmp_path / "big"
    many: list[Item] = [(f"blk.{i}.weight", 400_000, lambda out: None) for i in range(272)]
    write_packed(path, "k", {}, many).close()
    assert path.stat().st_size > 100_000_000
    seconds = []
    for _ in range(9):
        start = time.perf_counter()
        packed = open_packed(path, "k")
        seconds.append(time.perf_counter() - start)
        assert packed is not None
        packed.close()
    assert min(seconds) < 0.002


def test_source_key_follows_the_source(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"

    def key(layout: str = "1") -> str:
        with open_gguf(path) as source:
            return source_key(source, layout)

    path.write_bytes(gguf_bytes.sound())
    os.utime(path, ns=(0, 10**18))
    first = key()
    assert first == key()
    assert first != key("2")
    os.utime(path, ns=(0, 10**18 + 1))
    assert first != key()
    path.write_bytes(gguf_bytes.sound() + b"\0")
    os.utime(path, ns=(0, 10**18))
    longer = key()
    assert first != longer
    path.write_bytes(gguf_bytes.sound().replace(b"llama", b"gemma") + b"\0")
    os.utime(path, ns=(0, 10**18))
    assert longer != key()
