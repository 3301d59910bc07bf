# SPDX-License-Identifier: Apache-2.0
"""Writes a sentencepiece model: the protobuf message that the `sentencepiece` package loads, by hand.

Its schema is public and frozen, a dozen fields of it are needed, and the protobuf package is not otherwise. A message
is a row of fields; a field is a key, ``number << 3 | wire type``, and a value: type 0 an integer in groups of seven
bits, lowest first, the top bit saying that more follow; type 5 four bytes; type 2 a length and as many bytes.

    ModelProto      1 pieces (repeated)   2 trainer_spec   3 normalizer_spec
    SentencePiece   1 piece   2 score (float)   3 type
    TrainerSpec     3 model_type (2: BPE)   4 vocab_size   35 byte_fallback   40–43 ids of unk, bos, eos, pad
    NormalizerSpec  1 name   3 add_dummy_prefix   4 remove_extra_whitespaces   5 escape_whitespaces
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

_BPE = 2
_MINUS_ONE = (1 << 64) - 1  # negative integers are written in 64 bits


def bpe_model(pieces: Iterable[tuple[str, float, int]], size: int, unk_id: int, *, byte_fallback: bool) -> bytes:
    """A serialised model of `size` pieces, each a text, a score and a type (1 normal … 6 byte).

    The text is taken as it comes: no normalisation, no space added or removed; spaces are written as U+2581.
    """
    trainer = (
        _integer(3, _BPE)
        + _integer(4, size)
        + _integer(35, byte_fallback)
        + _integer(40, unk_id)
        + b"".join(_integer(field, _MINUS_ONE) for field in (41, 42, 43))  # bos, eos, pad: the caller's business
    )
    normalizer = _bytes(1, b"identity") + _integer(3, 0) + _integer(4, 0) + _integer(5, 1)
    listed = [_bytes(1, _piece(*piece)) for piece in pieces]
    return b"".join([*listed, _bytes(2, trainer), _bytes(3, normalizer)])


def _piece(text: str, score: float, kind: int) -> bytes:
    return _bytes(1, text.encode()) + _varint(2 << 3 | 5) + struct.pack("<f", score) + _integer(3, kind)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _integer(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _varint(value: int) -> bytes:
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)
