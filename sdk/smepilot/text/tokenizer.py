# SPDX-License-Identifier: Apache-2.0
"""What every tokenizer offers, and the way from a file's metadata to one.

GGUF names two kinds that matter here: ``gpt2`` (byte-level BPE, bpe.py) and ``llama`` (sentencepiece, spm.py). Building
one means decoding and checking hundreds of thousands of strings, so the result is kept in a cache folder (cache.py);
a start that finds it there reads two or three scalars of the metadata and never looks at its arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from smepilot.errors import TokenizerError
from smepilot.text import cache as store


class Tokenizer(Protocol):
    """Text to token ids and back."""

    @property
    def vocab_size(self) -> int:
        """Number of token ids; they run from 0."""

    @property
    def bos_id(self) -> int | None:
        """The token that opens a text, if the model has one."""

    @property
    def eos_ids(self) -> frozenset[int]:
        """Every token that ends a turn: end of sequence, of turn, of message."""

    @property
    def add_bos(self) -> bool:
        """Whether the model was trained on texts that begin with `bos_id`."""

    @property
    def bos_token(self) -> str:
        """Text of `bos_id`, "" if there is none: what a chat template calls ``bos_token``."""

    @property
    def eos_token(self) -> str:
        """Text of the end-of-sequence token, "" if there is none: what a chat template calls ``eos_token``."""

    @property
    def space_prefix(self) -> bool:
        """Whether a text gets a space in front when encoded, which `decode` takes away again."""

    def encode(self, text: str, *, add_special: bool = True, parse_special: bool = True) -> list[int]:
        """Token ids of `text`.

        Args:
            text: any string; lone surrogates count as U+FFFD.
            add_special: put `bos_id` in front where `add_bos` says so, unless the text brings its own (a chat
                template that writes BOS): it is there exactly once. EOS is never added, a prompt is to be continued.
            parse_special: read the text of control tokens ("<|im_end|>") as those tokens. False for text that is not
                trusted, or that is about such tokens; then they are spelled out like any other text.
        """

    def decode(self, ids: Sequence[int], *, skip_special: bool = True, continuation: bool = False) -> str:
        """Text of `ids`; bytes that are not UTF-8 become U+FFFD.

        Args:
            ids: token ids, each below `vocab_size`.
            skip_special: leave control tokens out.
            continuation: the ids go on from other text, so a leading space belongs to them (see `space_prefix`).
        """

    def token_bytes(self, id: int, *, special: bool = False) -> bytes:
        """Bytes that one token stands for: part of a character, perhaps; b"" for control tokens unless `special`."""

    def is_special(self, id: int) -> bool:
        """Whether this is a control token: it has a meaning, but stands for no text."""

    def find(self, text: str) -> int | None:
        """Id of the control or added token with exactly this text, such as "<|im_start|>"."""


def from_metadata(meta: Mapping[str, Any], *, cache: Path | None = None) -> Tokenizer:
    """Builds the tokenizer that GGUF metadata describes, or takes it from the cache.

    Args:
        meta: metadata of a model file: ``tokenizer.ggml.*``; its arrays may be lazy, and are not touched when the
            cache is good.
        cache: a folder that belongs to this very file. What cannot be written there is built again next time; what
            is damaged or of another version there is replaced.

    Raises:
        TokenizerError: a key is missing, wrong, or names something this version does not know.
    """
    kind = meta.get("tokenizer.ggml.model")
    if kind is None:
        raise TokenizerError("key 'tokenizer.ggml.model' is missing: convert the model again with its tokenizer")
    if kind not in ("gpt2", "llama"):
        raise TokenizerError(f"tokenizer.ggml.model is {kind!r}: only 'gpt2' and 'llama' tokenizers are supported")
    fingerprint = store.fingerprint(meta)
    packed = store.load(cache, fingerprint) if cache is not None else None
    if packed is None:
        packed = _pack(kind, meta)
        if cache is not None:
            store.save(cache, fingerprint, packed)
    return _open(kind, packed)


def _pack(kind: str, meta: Mapping[str, Any]) -> store.Packed:
    if kind == "gpt2":
        from smepilot.text.pack_bpe import pack
    else:
        from smepilot.text.pack_spm import pack
    return pack(meta)


def _open(kind: str, packed: store.Packed) -> Tokenizer:
    if kind == "gpt2":
        from smepilot.text.bpe import ByteTokenizer

        return ByteTokenizer(packed)
    from smepilot.text.spm import SentencePieceTokenizer

    return SentencePieceTokenizer(packed)
