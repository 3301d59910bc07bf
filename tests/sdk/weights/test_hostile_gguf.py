# SPDX-License-Identifier: Apache-2.0
"""GGUF files that lie: each is refused with one line that names the file, before anything is used or allocated."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smepilot.errors import FileFormatError, ModelError, NotFoundError, UnsupportedModelError
from smepilot.weights.gguf import open_gguf
from smepilot.weights.metadata import GgufStringArray
from tests.sdk.weights.gguf_bytes import (
    ARRAY,
    BOOL,
    F32,
    I32,
    STRING,
    T_F32,
    T_Q4_0,
    U8,
    U16,
    U32,
    array,
    gguf,
    key,
    sound,
    string,
    tensor,
    u32,
    u64,
)

HUGE = 2**63
MOST = 2**64 - 1
AT_ALIGNMENT = tensor("x", [8])


def nest(depth: int) -> bytes:
    """Return arrays of arrays of ... of one byte."""
    payload = array(U8, 1, b"\0")
    for _ in range(depth):
        payload = array(ARRAY, 1, payload)
    return payload


DAMAGED: dict[str, tuple[bytes, str]] = {
    "nothing but magic": (b"GGUF", "header: 4 bytes expected at 4, 0 are left"),
    "header cut": (gguf()[:20], "header"),
    "keys beyond the file": (gguf(n_keys=1), "1 keys announced"),
    "keys beyond all memory": (gguf([key("a", U8, b"\0")], n_keys=MOST), "keys announced"),
    "tensors beyond all memory": (gguf(n_tensors=MOST), "tensors announced"),
    "tensors beyond the file": (gguf([], [AT_ALIGNMENT], bytes(32), n_tensors=5), "tensors announced"),
    "key length past the end": (gguf([string("a", HUGE) + bytes(32)]), "key 0: a string of 9223372036854775808"),
    "key length that wraps": (gguf([string("a", MOST - 7) + bytes(32)]), "key 0: a string of"),
    "empty key": (gguf([key("", U8, b"\0") + bytes(8)]), "key 0: an empty name"),
    "key not UTF-8": (gguf([key(b"\xff", U8, b"\0")]), "not UTF-8"),
    "key twice": (gguf([key("a", U8, b"\0"), key("a", U8, b"\1")]), "key 'a': it occurs twice"),
    "value type unknown": (gguf([key("a", 13, bytes(8))]), "key 'a': unknown value type 13"),
    "element type unknown": (gguf([key("a", ARRAY, array(99, 1, bytes(8)))]), "unknown value type 99"),
    "value cut": (gguf([key("abc", U32, b"")], alignment=1), "key .abc.: 4 bytes expected"),
    "string past the end": (gguf([key("a", STRING, string("x", 1 << 40))]), "key 'a': a string of"),
    "truth value 2": (gguf([key("a", BOOL, b"\2")]), "key 'a': a truth value of 2"),
    "truth value 2 in array": (gguf([key("a", ARRAY, array(BOOL, 2, b"\1\2"))]), "neither 0 nor 1"),
    "numbers past the end": (gguf([key("a", ARRAY, array(F32, 1 << 40))]), "key 'a': 4398046511104 bytes"),
    "numbers that wrap": (gguf([key("a", ARRAY, array(I32, 2**62 + 1, bytes(64)))]), "key 'a'"),
    "strings past the end": (gguf([key("a", ARRAY, array(STRING, 1 << 40))]), "1099511627776 strings announced"),
    "strings that wrap": (gguf([key("a", ARRAY, array(STRING, 2**61, bytes(64)))]), "strings announced"),
    "element past the end": (
        gguf([key("a", ARRAY, array(STRING, 2, string("x") + string("y", MOST)))]),
        "key 'a': string 1 of 2 is 18446744073709551615 bytes long",
    ),
    "nested too deep": (gguf([key("a", ARRAY, nest(100))]), "nested"),
    "nested too often": (gguf([key("a", ARRAY, array(ARRAY, MOST))]), "nested"),
    "alignment 0": (gguf([key("general.alignment", U32, u32(0))]), "alignment is 0"),
    "alignment 24": (gguf([key("general.alignment", U32, u32(24))]), "alignment is 24"),
    "alignment text": (gguf([key("general.alignment", STRING, string("32"))]), "alignment is '32'"),
    "empty tensor name": (gguf([], [tensor("", [8])], bytes(32)), "tensor 0: an empty name"),
    "tensor name too long": (gguf([], [tensor("x" * 300, [8])], bytes(32)), "tensor 0: a string of 300"),
    "tensor twice": (gguf([], [AT_ALIGNMENT, tensor("x", [8], offset=32)], bytes(64)), "'x': it occurs twice"),
    "no dimensions": (gguf([], [tensor("x", [])], bytes(32)), "tensor 'x': it has 0 dimensions"),
    "5 dimensions": (gguf([], [tensor("x", [1] * 5)], bytes(32)), "tensor 'x': it has 5 dimensions"),
    "2 ** 32 - 1 dimensions": (gguf([], [tensor("x", [1], n_dims=2**32 - 1)], bytes(32)), "dimensions"),
    "dimension 0": (gguf([], [tensor("x", [8, 0])], bytes(32)), "'x': a dimension of"),
    "dimensions that wrap to 0": (gguf([], [tensor("x", [2**32, 2**32])], bytes(32)), "63 bits"),
    "dimensions that wrap to 8": (gguf([], [tensor("x", [2**63, 2, 2, 2])], bytes(32)), "63 bits"),
    "bytes that wrap": (gguf([], [tensor("x", [2**62])], bytes(32)), "truncated"),
    "part of a block": (gguf([], [tensor("x", [48, 2], T_Q4_0)], bytes(96)), "rows of 48 elements .* Q4_0"),
    "offset past the end": (gguf([], [tensor("x", [8], offset=64)], bytes(32)), "'x': it ends at byte"),
    "offset that wraps": (gguf([], [tensor("x", [8], offset=MOST - 31)], bytes(32)), "it ends at byte"),
    "offset off alignment": (gguf([], [tensor("x", [8], offset=4)], bytes(64)), "no multiple of the alignment"),
    "data cut": (gguf([], [AT_ALIGNMENT], bytes(31)), "truncated, fetch it again"),
    "data absent": (gguf([], [AT_ALIGNMENT]), "truncated"),
    "tensors overlap": (
        gguf([], [tensor("x", [16]), tensor("y", [8], offset=32)], bytes(64)),
        "tensors 'x' and 'y' overlap",
    ),
    "zip": (b"PK\x03\x04" + bytes(100), "zip archive"),
    "git lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git lfs pull"),
    "web page": (b"\n<!doctype html><html>", "web page"),
    "old ggml": (struct.pack("<I", 0x67676A74) + bytes(64), "old ggml format"),
    "foreign": (b"\x7fELF" + bytes(64), "is not a GGUF file"),
    "one byte": (b"G", "is not a GGUF file"),
}

UNSUPPORTED: dict[str, tuple[bytes, str]] = {
    "version 1": (gguf(version=1), "version 1"),
    "version 4": (gguf(version=4), "version 4"),
    "big-endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
    "shard": (gguf([key("split.count", U16, b"\3\0"), key("split.no", U16, b"\1\0")]), "shard 2 of 3"),
    "element type": (gguf([], [tensor("x", [8], 77)], bytes(32)), "tensor 'x' has element type number 77"),
    "withdrawn element type": (gguf([], [tensor("x", [32], 4)], bytes(32)), "number 4"),
}


def cases(table: dict[str, tuple[bytes, str]]) -> pytest.MarkDecorator:
    """Parametrise a test over a table of files and what their refusal says."""
    return pytest.mark.parametrize(("content", "message"), table.values(), ids=table.keys())


def refusal(path: Path, content: bytes) -> str:
    """Write the file, open it, and return what it was refused with, having checked that it is one line."""
    path.write_bytes(content)
    with pytest.raises(ModelError) as caught:
        open_gguf(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text


@cases(DAMAGED)
def test_damaged(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=message):
        open_gguf(path)
    refusal(path, content)


@cases(UNSUPPORTED)
def test_unsupported(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(UnsupportedModelError, match=message):
        open_gguf(path)
    refusal(path, content)


@pytest.mark.parametrize("announced", ["keys", "tensors", "numbers", "strings", "nested"])
def test_announcements_allocate_nothing(tmp_path: Path, announced: str) -> None:
    """A megabyte of file that announces more than there is costs less memory than the file."""
    filler = bytes(1 << 20)
    content = {
        "keys": gguf([filler], n_keys=1 << 15),
        "tensors": gguf([], [filler], n_tensors=1 << 14),
        "numbers": gguf([key("a", ARRAY, array(F32, (1 << 18) + 64, filler))]),
        "strings": gguf([key("a", ARRAY, array(STRING, (1 << 17) + 64, filler))]),
        "nested": gguf([key("a", ARRAY, array(ARRAY, (1 << 16) + 1, filler))]),
    }[announced]
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError):
            open_gguf(path)
        assert tracemalloc.get_traced_memory()[1] < len(content)
    finally:
        tracemalloc.stop()


def test_every_truncation(tmp_path: Path) -> None:
    content = sound()
    for length in range(1, len(content)):
        refusal(tmp_path / "x.gguf", content[:length])


def use(path: Path) -> None:
    """Open a file and read everything in it; a ModelError is an answer, any other exception a fault."""
    try:
        with open_gguf(path) as file:
            for value in file.metadata.values():
                if isinstance(value, GgufStringArray):
                    assert sum(len(value.raw(i)) for i in range(len(value))) <= path.stat().st_size
                    list(value)
            for name, facts in file.tensors.items():
                assert len(bytes(file.data(name))) == facts.nbytes
            file.fingerprint()
    except ModelError:
        return


def test_every_byte(tmp_path: Path) -> None:
    content = sound()
    path = tmp_path / "x.gguf"
    for position in range(len(content) - 162):
        for value in (0, 1, 0x7F, 0x80, 0xFF, content[position] ^ 1):
            path.write_bytes(content[:position] + bytes([value]) + content[position + 1 :])
            use(path)


@settings(max_examples=500)
@given(st.lists(st.tuples(st.integers(0, len(sound()) - 1), st.binary(max_size=12)), min_size=1, max_size=4))
def test_splices(tmp_path_factory: pytest.TempPathFactory, splices: list[tuple[int, bytes]]) -> None:
    content = bytearray(sound())
    for position, piece in splices:
        content[position : position + len(piece) // 2] = piece
    path = tmp_path_factory.getbasetemp() / "spliced.gguf"
    path.write_bytes(content)
    use(path)


@settings(max_examples=300)
@given(st.binary(max_size=400))
def test_noise_behind_a_good_header(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "noise.gguf"
    path.write_bytes(gguf([noise], n_keys=3, n_tensors=2))
    use(path)


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such file"):
        open_gguf(tmp_path / "nowhere.gguf")
    with pytest.raises(NotFoundError, match="no such file"):
        open_gguf(Path(__file__) / "below-a-file.gguf")
    with pytest.raises(FileFormatError, match="is a folder"):
        open_gguf(tmp_path)
    with pytest.raises(FileFormatError, match="cannot be read"):
        open_gguf("nul\0byte.gguf")
    (tmp_path / "empty.gguf").touch()
    with pytest.raises(FileFormatError, match="is empty"):
        open_gguf(tmp_path / "empty.gguf")
    os.mkfifo(tmp_path / "fifo.gguf")
    with pytest.raises(FileFormatError, match="not a regular file"):
        open_gguf(tmp_path / "fifo.gguf")


FORBIDDEN = """
import os, sys
from smepilot.weights.gguf import open_gguf
if os.geteuid() == 0:
    os.setuid(65534)  # root may read everything
open_gguf(sys.argv[1])
"""


def test_forbidden_file(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(sound())
    path.chmod(0)
    child = subprocess.run([sys.executable, "-c", FORBIDDEN, path], capture_output=True, text=True)
    assert "FileFormatError" in child.stderr.splitlines()[-1]
    assert "cannot be read (Permission denied)" in child.stderr.splitlines()[-1]


def test_unlikely_types_of_split_keys(tmp_path: Path) -> None:
    """Keys with a meaning may have any type in a file; a strange one is ignored or refused, never a crash."""
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf([key("split.count", STRING, string("3"))]))
    open_gguf(path).close()
    text = refusal(path, gguf([key("split.count", U16, b"\2\0"), key("split.no", STRING, string("a"))]))
    assert "one of 2" in text


def test_zero_sized_tail(tmp_path: Path) -> None:
    """A file may end where its last tensor does, without the padding."""
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf([], [tensor("x", [1], T_F32)], b"abcd"))
    with open_gguf(path) as file:
        assert bytes(file.data("x")) == b"abcd"


def test_count_next_to_length(tmp_path: Path) -> None:
    """Counts of exactly what is left are fine, one more is not."""
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf([key("a", ARRAY, array(STRING, 2, u64(0) * 2))], alignment=1))
    with open_gguf(path) as file:
        assert list(file.metadata["a"]) == ["", ""]
    assert "3 strings announced" in refusal(path, gguf([key("a", ARRAY, array(STRING, 3, u64(0) * 2))], alignment=1))
