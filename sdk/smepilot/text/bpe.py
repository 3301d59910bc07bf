# SPDX-License-Identifier: Apache-2.0
"""GGUF's ``gpt2`` kind: byte-level byte-pair encoding (GPT-2, Llama 3, Qwen, SmolLM, StarCoder …).

A text is cut at special tokens, brought to a normal form, cut into words by the model's own pattern (pretokenize.py,
run by the `tokenizers` package), and each word's UTF-8 bytes are merged (merges.py). The package's own merging gives
the same ids, which the tests assert over every vocabulary at hand, but has to read the whole vocabulary first; ours
starts at once, and all of a model's tokens cost the bytes of their file.

What is used here was prepared by pack_bpe.py: arrays of numbers, and each token's bytes.
"""

from __future__ import annotations

import logging
import unicodedata
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from smepilot.text.base import VocabularyTokenizer
from smepilot.text.cache import Packed
from smepilot.text.merges import MergeTable
from smepilot.text.pretokenize import SCHEMES, pre_tokenizer

_LOG = logging.getLogger(__name__)
NO_TOKEN = 0xFFFFFFFF  # what the table of bytes holds for a byte without a token
_REMEMBERED_WORDS = 1 << 16


class ByteTokenizer(VocabularyTokenizer):
    """A `Tokenizer` of the ``gpt2`` kind."""

    def __init__(self, packed: Packed) -> None:
        """`packed`: what pack_bpe.py made."""
        super().__init__(packed)
        self._scheme = SCHEMES[packed.facts["pre"]]
        self._byte = memoryview(packed.blobs["byte"]).cast("B").cast("I")
        self._sorted = memoryview(packed.blobs["sorted"]).cast("B").cast("I")
        self._merges = MergeTable(packed.blobs)
        self._words: dict[str, list[int]] = {}
        self._cut: Callable[[str], list[tuple[str, Any]]] | None = None

    def _encode_plain(self, text: str, after_special: bool, ids: list[int]) -> None:
        if self._scheme.nfc:
            text = unicodedata.normalize("NFC", text)
        if self._cut is None:
            self._cut = pre_tokenizer(self._scheme).pre_tokenize_str
        words = self._words
        for word, _ in self._cut(text):
            found = words.get(word)
            if found is None:
                if len(words) >= _REMEMBERED_WORDS:
                    words.clear()
                found = words[word] = self._encode_word(word.encode())
            ids += found

    def _encode_word(self, word: bytes) -> list[int]:
        if self._scheme.whole_words and (whole := self._find_piece(word)) is not None:
            return [whole]
        ids = [self._byte[byte] for byte in word]
        if NO_TOKEN in ids:
            # Vocabularies may lack bytes of unassigned planes of Unicode. Their makers' tokenizers leave them out.
            _LOG.warning("%r holds bytes that this model has no token for; they are left out", word)
            ids = [i for i in ids if i != NO_TOKEN]
        return self._merges.apply(ids)

    def _find_piece(self, word: bytes) -> int | None:
        place = bisect_left(self._sorted, word, key=self._bytes)
        if place < len(self._sorted) and self._bytes(found := self._sorted[place]) == word:
            return found
        return None
