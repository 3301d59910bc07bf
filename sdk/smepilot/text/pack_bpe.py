# SPDX-License-Identifier: Apache-2.0
"""Prepares a ``gpt2`` vocabulary for bpe.py: checks it, and brings it into arrays that need no further work.

In GGUF a token's text is written in GPT-2's alphabet, a printable character for each byte; it is turned back into bytes
here. Control and added tokens are written as they are. Only a start without a cache comes this way.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from functools import cache
from itertools import accumulate
from typing import Any

from smepilot.errors import TokenizerError
from smepilot.text import vocabulary
from smepilot.text.bpe import NO_TOKEN
from smepilot.text.cache import Packed
from smepilot.text.merges import MergeTable
from smepilot.text.pretokenize import SCHEMES, scheme
from smepilot.text.vocabulary import BYTE, NORMAL, UNUSED


def pack(meta: Mapping[str, Any]) -> Packed:
    """Checks the metadata and brings it into the form that `ByteTokenizer` uses.

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
        "byte": array("I", [found.index.get(c, NO_TOKEN) for c in byte_alphabet()]).tobytes(),
        "sorted": array("I", sorted(whole, key=pieces.__getitem__)).tobytes(),
        "offset": array("I", accumulate(map(len, pieces), initial=0)).tobytes(),
        "piece": b"".join(pieces),
    }
    specials = found.specials.as_facts()
    facts = {"pre": pre if pre in SCHEMES else "default", "specials": specials, "space_prefix": False}
    return Packed(facts, blobs)


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
