# SPDX-License-Identifier: Apache-2.0
"""The header of a packed model: safetensors with cache-line alignment, true lengths, and two digests.

    u64 length · JSON, padded with blanks to 64 bytes · tensors in the table's order, each padded with zeros to 64

safetensors allows no gaps between tensors, so padding belongs to the tensor before it and its shape says so; the true
lengths are in the metadata. The JSON starts with a field of fixed width for two SHA-256 digests, of the header and of
the whole file, each computed while the field is zero.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

ALIGNMENT = 64
_MAX_HEADER = 100_000_000  # the limit of the safetensors library
_HEAD = b'{"__metadata__":{"packed.digest":"'
_WIDTH = 64  # hex digits of one digest
_NO_DIGESTS = b"0" * (2 * _WIDTH)
_DIGESTS = slice(8 + len(_HEAD), 8 + len(_HEAD) + 2 * _WIDTH)
_KEY, _LENGTHS = "packed.key", "packed.lengths"


class DamageError(Exception):
    """Why a packed file cannot be trusted; never leaves the package."""


class Span(NamedTuple):
    """Where a tensor is in the file; `nbytes` without padding."""

    offset: int
    nbytes: int


class Header(NamedTuple):
    """What a header says. `raw` has zeros for its digests."""

    raw: bytes
    key: str
    metadata: dict[str, str]
    spans: dict[str, Span]
    size: int  # of the whole file


def padded(nbytes: int) -> int:
    """Bytes that a tensor of `nbytes` takes in the file."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def build(key: str, metadata: Mapping[str, str], sizes: Sequence[tuple[str, int]]) -> Header:
    """The header for tensors of the given names and sizes, in this order."""
    lengths = dict(sizes)
    if len(lengths) != len(sizes) or "__metadata__" in lengths or min(lengths.values(), default=1) <= 0:
        raise ValueError("tensors to pack need distinct names and at least one byte each")
    own = {"packed.digest": _NO_DIGESTS.decode(), _KEY: key, _LENGTHS: json.dumps(lengths, separators=(",", ":"))}
    table: dict[str, Any] = {"__metadata__": own | dict(metadata) | own}
    end = 0
    for name, nbytes in sizes:
        start, end = end, end + padded(nbytes)
        table[name] = {"dtype": "U8", "shape": [padded(nbytes)], "data_offsets": [start, end]}
    text = json.dumps(table, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    raw = struct.pack("<Q", len(text)) + text
    return _interpret(raw)


def seal(view: memoryview, header: Header, content_digest: str) -> None:
    """Writes the digests into the header at the start of `view`; `content_digest` is over raw header and tensors."""
    view[_DIGESTS] = (hashlib.sha256(header.raw).hexdigest() + content_digest).encode()


def read(view: memoryview) -> tuple[Header, str]:
    """Reads and checks the header of the packed file `view`; returns it with the digest of the whole file.

    Raises:
        DamageError: header changed or foreign, or the file is not as long as its table says.
    """
    if len(view) < _DIGESTS.stop:
        raise DamageError(f"{len(view)} bytes are too few")
    end = 8 + int(struct.unpack_from("<Q", view)[0])
    if end > min(len(view), _MAX_HEADER) or end % ALIGNMENT or view[8 : _DIGESTS.start] != _HEAD:
        raise DamageError("this is not the header of a packed model")
    raw = bytes(view[: _DIGESTS.start]) + _NO_DIGESTS + bytes(view[_DIGESTS.stop : end])
    digests = bytes(view[_DIGESTS])
    if hashlib.sha256(raw).hexdigest().encode() != digests[:_WIDTH]:
        raise DamageError("the header has changed since packing")
    header = _interpret(raw)
    if header.size != len(view):
        raise DamageError(f"{len(view)} bytes long, {header.size} expected")
    return header, digests[_WIDTH:].decode(errors="replace")


def _interpret(raw: bytes) -> Header:
    """Parses a header and checks that its tensors follow each other without gaps or overlaps."""
    try:
        table: dict[str, Any] = json.loads(raw[8:])
        metadata: dict[str, str] = table.pop("__metadata__")
        lengths: dict[str, int] = json.loads(metadata[_LENGTHS])
        spans: dict[str, Span] = {}
        position = 0
        for name, entry in table.items():
            first, last = entry["data_offsets"]
            if first != position or last - first != padded(lengths[name]):
                raise DamageError(f"tensor {name!r} is out of place")
            spans[name] = Span(len(raw) + first, lengths[name])
            position = last
        key = metadata[_KEY]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamageError(f"the header makes no sense: {error}") from error
    theirs = {name: value for name, value in metadata.items() if name not in ("packed.digest", _KEY, _LENGTHS)}
    return Header(raw, key, theirs, spans, len(raw) + position)
