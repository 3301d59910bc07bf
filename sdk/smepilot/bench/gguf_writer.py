# SPDX-License-Identifier: Apache-2.0
"""Writes a GGUF file front to back without holding it in memory.

A GGUF file is a header, metadata, a table of tensors with their offsets, and the tensors' bytes, each padded to 32.
Sizes follow from types and shapes, so the table can be written before any tensor exists; then each tensor's bytes
are asked for and written in pieces.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from smepilot.weights.dtypes import BY_NUMBER

_ALIGN = 32
_U32, _I32, _F32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9
_SIZES = {entry.name: (number, entry.block, entry.nbytes) for number, entry in BY_NUMBER.items()}

Value = str | bool | int | float | Sequence[str] | Sequence[int]


@dataclass(frozen=True)
class Planned:
    """A tensor to be written; `shape` is row-major, and `pieces` yields exactly `nbytes` bytes when called."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    pieces: Callable[[], Iterable[bytes]]

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor, without padding."""
        _, block, size = _SIZES[self.dtype]
        return math.prod(self.shape) // block * size


def write(
    out: BinaryIO,
    metadata: Mapping[str, Value],
    tensors: Sequence[Planned],
    on_progress: Callable[[int, int], None] | None = None,
) -> None:
    """Writes the whole file.

    Args:
        out: Where to; only written to, never sought.
        metadata: Keys to values: str, bool, int (unsigned, 32 bits), float (32 bits), lists of str or of int (32 bits).
        tensors: In the file's order.
        on_progress: Called with bytes written and bytes in all, of the tensors.
    """
    out.write(_head(metadata, tensors))
    done, total = 0, sum(tensor.nbytes for tensor in tensors)
    for tensor in tensors:
        end = done + tensor.nbytes
        for piece in tensor.pieces():
            out.write(piece)
            done += len(piece)
            if on_progress is not None:
                on_progress(done, total)
        assert done == end, f"{tensor.name} wrote {done - end + tensor.nbytes} of {tensor.nbytes} bytes"
        out.write(bytes(-tensor.nbytes % _ALIGN))


def size(metadata: Mapping[str, Value], tensors: Sequence[Planned]) -> int:
    """Bytes of the whole file."""
    return len(_head(metadata, tensors)) + sum(_padded(tensor.nbytes) for tensor in tensors)


def _padded(nbytes: int) -> int:
    return nbytes + -nbytes % _ALIGN


def _head(metadata: Mapping[str, Value], tensors: Sequence[Planned]) -> bytes:
    parts = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(metadata))]
    parts += [_string(key) + _value(value) for key, value in metadata.items()]
    offset = 0
    for tensor in tensors:
        dims = tensor.shape[::-1]
        parts.append(_string(tensor.name) + struct.pack(f"<I{len(dims)}Q", len(dims), *dims))
        parts.append(struct.pack("<IQ", _SIZES[tensor.dtype][0], offset))
        offset += _padded(tensor.nbytes)
    head = b"".join(parts)
    return head + bytes(-len(head) % _ALIGN)


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value: Value) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _string(value)
    if isinstance(value, bool):
        return struct.pack("<I?", _BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", _U32, value)
    if isinstance(value, float):
        return struct.pack("<If", _F32, value)
    texts = [item for item in value if isinstance(item, str)]
    kind, raw = (_STRING, b"".join(map(_string, texts))) if texts else (_I32, struct.pack(f"<{len(value)}i", *value))
    return struct.pack("<IIQ", _ARRAY, kind, len(value)) + raw
