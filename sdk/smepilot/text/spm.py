# SPDX-License-Identifier: Apache-2.0
"""GGUF's ``llama`` kind: sentencepiece BPE with byte fallback (Llama 2, Mistral, TinyLlama …).

GGUF stores the pieces of a sentencepiece model with scores and types but not the model, so one is written from them
(spmproto.py) and run by the `sentencepiece` package. Spaces follow llama.cpp, whose converters decide what the files
say: a space goes in front of the text, and of every text after a special token, unless
``tokenizer.ggml.add_space_prefix`` is false; decoding takes one leading space away.

Special tokens are cut out beforehand (base.py). The model must not match the rest of them in text, so control tokens
are control tokens to it as well, and it is given exactly one "unknown", which its loader demands.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from smepilot.errors import TokenizerError
from smepilot.text import vocabulary
from smepilot.text.base import VocabularyTokenizer
from smepilot.text.cache import Packed
from smepilot.text.special import Specials
from smepilot.text.spmproto import bpe_model
from smepilot.text.vocabulary import BYTE, CONTROL, UNKNOWN, UNUSED, Vocabulary

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # ▁, how sentencepiece writes a space
_SPARE_UNKNOWN = "<smepilot:unknown>"
_NUL = "<smepilot:nul>"


def pack(meta: Mapping[str, Any]) -> Packed:
    """Checks the metadata and brings it into the form that `open_packed` uses.

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
    _processor(bytes(blobs["model"]))  # what sentencepiece refuses is refused now, not at the first prompt
    facts = {
        "specials": found.specials.as_facts(),
        "space_prefix": vocabulary.flag(meta, "add_space_prefix", True),
    }
    return Packed(facts, blobs)


def open_packed(packed: Packed) -> SentencePieceTokenizer:
    """The tokenizer that `pack` prepared."""
    return SentencePieceTokenizer(packed)


class SentencePieceTokenizer(VocabularyTokenizer):
    """A `Tokenizer` of the ``llama`` kind."""

    def __init__(self, packed: Packed) -> None:
        """`packed`: what `pack` made."""
        self._offset = memoryview(packed.blobs["offset"]).cast("B").cast("I")
        self._pieces = memoryview(packed.blobs["piece"])
        specials = Specials.from_facts(packed.facts["specials"])
        super().__init__(len(self._offset) - 1, specials, space_prefix=packed.facts["space_prefix"])
        self._model = packed.blobs["model"]
        self._processor: SentencePieceProcessor | None = None

    def _encode_plain(self, text: str, after_special: bool, ids: list[int]) -> None:
        if self._processor is None:
            self._processor = _processor(bytes(self._model))
        if self.space_prefix and after_special:
            text = " " + text
        # The spare unknown lies behind the vocabulary: what it stands for is what the model cannot say at all.
        ids += [i for i in self._processor.EncodeAsIds(text) if i < self.vocab_size]

    def _bytes(self, id: int) -> bytes:
        return bytes(self._pieces[self._offset[id] : self._offset[id + 1]])


def _processor(model: bytes) -> SentencePieceProcessor:
    from sentencepiece import SentencePieceProcessor

    try:
        return SentencePieceProcessor(model_proto=model)
    except (RuntimeError, OSError) as error:
        raise TokenizerError(
            f"sentencepiece refuses the vocabulary in tokenizer.ggml.tokens ({error}): convert the model again"
        ) from error


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
