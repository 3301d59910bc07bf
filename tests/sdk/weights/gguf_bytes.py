# SPDX-License-Identifier: Apache-2.0
"""Writes GGUF files byte by byte, right or wrong: every count, length and offset can be given a lie."""

from __future__ import annotations

import struct
from collections.abc import Sequence

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
T_F32, T_F16, T_Q4_0, T_Q8_0, T_Q4_K = 0, 1, 2, 8, 12


def u32(value: int) -> bytes:
    """Return 4 bytes."""
    return struct.pack("<I", value)


def u64(value: int) -> bytes:
    """Return 8 bytes."""
    return struct.pack("<Q", value)


def string(text: bytes | str, length: int | None = None) -> bytes:
    """Return a string behind its length, or behind a false one."""
    raw = text.encode() if isinstance(text, str) else text
    return u64(len(raw) if length is None else length) + raw


def key(name: bytes | str, kind: int, payload: bytes) -> bytes:
    """Return a key with its value."""
    return string(name) + u32(kind) + payload


def array(kind: int, count: int, payload: bytes = b"") -> bytes:
    """Return the payload of a key whose kind is ARRAY."""
    return u32(kind) + u64(count) + payload


def tensor(
    name: bytes | str, dims: Sequence[int], kind: int = T_F32, offset: int = 0, n_dims: int | None = None
) -> bytes:
    """Return one row of the tensor table; dims are in the file's order, fastest first."""
    head = string(name) + u32(len(dims) if n_dims is None else n_dims)
    return head + b"".join(map(u64, dims)) + u32(kind) + u64(offset)


def gguf(
    keys: Sequence[bytes] = (),
    tensors: Sequence[bytes] = (),
    data: bytes = b"",
    *,
    magic: bytes = b"GGUF",
    version: int = 3,
    n_keys: int | None = None,
    n_tensors: int | None = None,
    alignment: int = 32,
) -> bytes:
    """Return a whole file; the data starts on `alignment`, which a key must state when it is not 32."""
    head = magic + u32(version) + u64(len(tensors) if n_tensors is None else n_tensors)
    head += u64(len(keys) if n_keys is None else n_keys) + b"".join(keys) + b"".join(tensors)
    return head + bytes(-len(head) % alignment) + data


def sound() -> bytes:
    """Return a small file with a value of every type, four tensors, and nothing wrong."""
    keys = [
        key("general.architecture", STRING, string("llama")),
        key("a.u8", U8, b"\xff"),
        key("a.i8", I8, b"\xff"),
        key("a.u16", U16, struct.pack("<H", 65535)),
        key("a.i16", I16, struct.pack("<h", -2)),
        key("a.u32", U32, u32(4_000_000_000)),
        key("a.i32", I32, struct.pack("<i", -3)),
        key("a.f32", F32, struct.pack("<f", 0.5)),
        key("a.bool", BOOL, b"\x01"),
        key("a.u64", U64, u64(2**64 - 1)),
        key("a.i64", I64, struct.pack("<q", -(2**63))),
        key("a.f64", F64, struct.pack("<d", 1e300)),
        key("l.tokens", ARRAY, array(STRING, 3, string("a") + string("") + string("Ġü\0"))),
        key("l.scores", ARRAY, array(F32, 3, struct.pack("<3f", -1, 0, 1))),
        key("l.flags", ARRAY, array(BOOL, 2, b"\x00\x01")),
        key("l.empty", ARRAY, array(STRING, 0)),
        key("l.nested", ARRAY, array(ARRAY, 2, array(U8, 1, b"\x07") + array(STRING, 1, string("x")))),
    ]
    tensors = [
        tensor("a.weight", [4, 2], T_F32, 0),
        tensor("b.weight", [32, 1, 2], T_Q4_0, 32),
        tensor("c.weight", [32], T_Q8_0, 96),
        tensor("d.weight", [1], T_F16, 160),
    ]
    return gguf(keys, tensors, bytes(range(162)))
