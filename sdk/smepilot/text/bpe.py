# SPDX-License-Identifier: Apache-2.0
"""GGUF's ``gpt2`` kind: byte-level byte-pair encoding (GPT-2, Llama 3, Qwen, SmolLM, StarCoder …).

A text is cut at special tokens, brought to a normal form, cut into words by the model's own pattern (pretokenize.py,
run by the `tokenizers` package), and each word's UTF-8 bytes are merged (merges.py). The package's own merging gives
the same ids, which the tests assert over every vocabulary at hand, but has to read the whole vocabulary first; ours
starts at once, and all of a model's tokens cost the bytes of their file.

In GGUF a token's text is written in GPT-2's alphabet: a printable character for each byte. It is turned back into
bytes when the tokenizer is packed. Control and added tokens are written as they are.
"""

from __future__ import annotations

import logging
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import cache
from itertools import accumulate
from typing import Any

from smepilot.errors import TokenizerError
from smepilot.text import vocabulary
from smepilot.text.base import VocabularyTokenizer
from smepilot.text.cache import Packed
from smepilot.text.merges import MergeTable
from smepilot.text.pretokenize import SCHEMES, pre_tokenizer, scheme
from smepilot.text.special import Specials
from smepilot.text.vocabulary import BYTE, NORMAL, UNUSED

_LOG = logging.getLogger(__name__)
_NO_TOKEN = 0xFFFFFFFF
_REMEMBERED_WORDS = 1 << 16


def pack(meta: Mapping[str, Any]) -> Packed:
    """Checks the metadata and brings it into the form that `open_packed` uses.

    Raises:
        TokenizerError: a key is missing or wrong.
    """
    pre = meta.get("tokenizer.ggml.pre")
    rules = scheme(pre)
    found = vocabulary.read(meta, bos=None, eos=None, unk=None, add_bos=rules.add_bos)
    pieces = [_piece(text, kind) for text, kind in zip(found.tokens, found.types, strict=True)]
    whole = [i for i, kind in enumerate(found.types) if kind == NORMAL] if rules.whole_words else []
    blobs: dict[str, bytes | memoryview] = {
        **MergeTable.build(len(pieces), _merges(meta, found.index)),
        "byte": array("I", [found.index.get(c, _NO_TOKEN) for c in byte_alphabet()]).tobytes(),
        "sorted": array("I", sorted(whole, key=pieces.__getitem__)).tobytes(),
        "offset": array("I", accumulate(map(len, pieces), initial=0)).tobytes(),
        "piece": b"".join(pieces),
    }
    facts = {"pre": pre if pre in SCHEMES else "default", "specials": found.specials.as_facts()}
    return Packed(facts, blobs)


def open_packed(packed: Packed) -> ByteTokenizer:
    """The tokenizer that `pack` prepared."""
    return ByteTokenizer(packed)


class ByteTokenizer(VocabularyTokenizer):
    """A `Tokenizer` of the ``gpt2`` kind."""

    def __init__(self, packed: Packed) -> None:
        """`packed`: what `pack` made."""
        self._offset = memoryview(packed.blobs["offset"]).cast("B").cast("I")
        self._pieces = memoryview(packed.blobs["piece"])
        super().__init__(len(self._offset) - 1, Specials.from_facts(packed.facts["specials"]), space_prefix=False)
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
        if _NO_TOKEN in ids:
            # Vocabularies may lack bytes of unassigned planes of Unicode. Their makers' tokenizers leave them out.
            _LOG.warning("%r holds bytes that this model has no token for; they are left out", word)
            ids = [i for i in ids if i != _NO_TOKEN]
        return self._merges.apply(ids)

    def _find_piece(self, word: bytes) -> int | None:
        place = bisect_left(self._sorted, word, key=self._bytes)
        if place < len(self._sorted) and self._bytes(found := self._sorted[place]) == word:
            return found
        return None

    def _bytes(self, id: int) -> bytes:
        return bytes(self._pieces[self._offset[id] : self._offset[id + 1]])


@cache
def byte_alphabet() -> str:
    """GPT-2's alphabet: element b is the character that stands for byte b.

    Printable characters of Latin-1 stand for themselves; the other 68 bytes take characters from U+0100 on.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(0x100, 0x200))
    return "".join(chr(byte if byte in printable else next(spare)) for byte in range(256))


@cache
def _byte_of() -> dict[str, int]:
    return {character: byte for byte, character in enumerate(byte_alphabet())}


def _piece(text: str, kind: int) -> bytes:
    """The bytes that a token stands for; of a control token its name."""
    if kind == UNUSED:
        return b""
    if kind == BYTE:
        return vocabulary.byte_value(text).to_bytes()
    if kind == NORMAL:
        try:
            return bytes(map(_byte_of().__getitem__, text))
        except KeyError:
            pass  # a word that was added without being declared so: written as it is
    return text.encode()


def _merges(meta: Mapping[str, Any], index: Mapping[str, int]) -> list[int]:
    """Ids of left, right and merged token of every merge, in the file's order, which is their rank."""
    flat: list[int] = []
    lines = vocabulary.array(meta, "merges")
    try:
        for line in lines:
            left, _, right = line.partition(" ")
            flat += (index[left], index[right], index[left + right])
    except KeyError as missing:
        raise TokenizerError(
            f"tokenizer.ggml.merges[{len(flat) // 3}] is {line!r:.60}, but there is no token {missing.args[0]!r:.60}: "
            "convert the model again"
        ) from None
    return flat
