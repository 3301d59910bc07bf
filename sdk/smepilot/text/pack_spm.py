# SPDX-License-Identifier: Apache-2.0
"""Prepares a ``llama`` vocabulary for spm.py: checks it, and writes the sentencepiece model that it once came from.

Special tokens are cut out of a text before the model sees it (base.py), and it must not find them in the rest, so
control tokens are control tokens to it as well. Its loader's other demands, exactly one "unknown" and all bytes or
none, are met by changing types. Only a start without a cache comes this way.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from smepilot.errors import TokenizerError
from smepilot.text import vocabulary
from smepilot.text.cache import Packed
from smepilot.text.spm import load_model
from smepilot.text.spmproto import bpe_model
from smepilot.text.vocabulary import BYTE, CONTROL, UNKNOWN, UNUSED, Vocabulary

_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # ▁, how sentencepiece writes a space
_SPARE_UNKNOWN = "<smepilot:unknown>"
_NUL = "<smepilot:nul>"


def pack(meta: Mapping[str, Any]) -> Packed:
    """Checks the metadata and brings it into the form that `SentencePieceTokenizer` uses.

    Raises:
        TokenizerError: a key is missing or wrong.
    """
    found = vocabulary.read(meta, bos=1, eos=2, unk=0, add_bos=True)
    scores = _scores(meta, len(found.tokens))
    pieces = [_piece(text, kind) for text, kind in zip(found.tokens, found.types, strict=True)]
    blobs: dict[str, bytes | memoryview] = {
        "offset": array("I", accumulate(map(len, pieces), initial=0)).tobytes(),
        "piece": b"".join(pieces),
        "model": _model(found, scores),
    }
    load_model(bytes(blobs["model"]))  # what sentencepiece refuses is refused now, not at the first prompt
    facts = {
        "specials": found.specials.as_facts(),
        "space_prefix": vocabulary.flag(meta, "add_space_prefix", True),
    }
    return Packed(facts, blobs)


def _piece(text: str, kind: int) -> bytes:
    """The bytes that a token stands for; of a control token its name."""
    if kind == UNUSED:
        return b""
    if kind == BYTE:
        return vocabulary.byte_value(text).to_bytes()
    return text.encode() if kind in (CONTROL, UNKNOWN) else text.replace(_SPACE, " ").encode()


def _scores(meta: Mapping[str, Any], size: int) -> list[float]:
    scores = vocabulary.array(meta, "scores")
    if len(scores) != size:
        raise TokenizerError(
            f"tokenizer.ggml.scores has {len(scores)} elements for {size} tokens: convert the model again"
        )
    for i, score in enumerate(scores):
        if not math.isfinite(score) or abs(score) > 1e30:
            raise TokenizerError(f"tokenizer.ggml.scores[{i}] is {score}, not a finite number: convert the model again")
    return scores


def _model(found: Vocabulary, scores: list[float]) -> bytes:
    """The sentencepiece model; its demands on the types of pieces are met here."""
    types = list(found.types)
    bytes_listed = {text for text, kind in zip(found.tokens, types, strict=True) if kind == BYTE}
    byte_fallback = bytes_listed == {f"<0x{byte:02X}>" for byte in range(256)}
    unknown = found.specials.unk
    for i, kind in enumerate(types):
        if i == unknown:
            types[i] = UNKNOWN
        elif kind == UNKNOWN or (kind == BYTE and not byte_fallback):
            types[i] = CONTROL
    # A token of NUL (they exist) would be reported on stderr and set aside in favour of its byte: as here, but quietly.
    names = [text if text != "\0" else _NUL for text in found.tokens]
    pieces = list(zip(names, scores, types, strict=True))
    if unknown is None:
        unknown = len(pieces)
        pieces.append((_SPARE_UNKNOWN, 0.0, UNKNOWN))
    return bpe_model(pieces, len(pieces), unknown, byte_fallback=byte_fallback)
