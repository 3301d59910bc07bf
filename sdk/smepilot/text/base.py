# SPDX-License-Identifier: Apache-2.0
"""What both kinds of tokenizer share: special tokens, BOS exactly once, and the way back to text.

A kind supplies one thing, the ids of a text without special tokens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from smepilot.errors import InvalidParameterError
from smepilot.text.cache import Packed
from smepilot.text.special import Specials, Splitter


class VocabularyTokenizer(ABC):
    """A `Tokenizer` over a vocabulary with special tokens."""

    def __init__(self, packed: Packed) -> None:
        """Takes the vocabulary as it was prepared.

        Args:
            packed: has the facts ``specials`` and ``space_prefix``, and the blobs ``piece``, the bytes of all tokens,
                and ``offset``, 32-bit numbers: where each token begins in them, and where the last ends.
        """
        self._offset = memoryview(packed.blobs["offset"]).cast("B").cast("I")
        self._pieces = memoryview(packed.blobs["piece"])
        self._specials = specials = Specials.from_facts(packed.facts["specials"])
        self._control_ids = frozenset(specials.control.values())
        self._all = Splitter({**specials.user, **specials.control})
        self._user = Splitter(specials.user)
        self.vocab_size = len(self._offset) - 1
        self.bos_id = specials.bos
        self.eos_ids = frozenset(specials.eos_ids)
        self.add_bos = specials.add_bos
        self.space_prefix: bool = packed.facts["space_prefix"]

    @property
    def bos_token(self) -> str:
        """Text of `bos_id`, "" if there is none."""
        return self._name(self._specials.bos)

    @property
    def eos_token(self) -> str:
        """Text of the end-of-sequence token, "" if there is none."""
        return self._name(self._specials.eos)

    def encode(self, text: str, *, add_special: bool = True, parse_special: bool = True) -> list[int]:
        """Token ids of `text`; see `Tokenizer.encode`."""
        ids: list[int] = []
        after_special = True  # the start of a text counts as such
        for part in (self._all if parse_special else self._user).split(_valid(text)):
            if isinstance(part, int):
                ids.append(part)
            else:
                self._encode_plain(part, after_special, ids)
            after_special = isinstance(part, int)
        if add_special and self.add_bos and self.bos_id is not None and ids[:1] != [self.bos_id]:
            ids.insert(0, self.bos_id)
        return ids

    def decode(self, ids: Sequence[int], *, skip_special: bool = True, continuation: bool = False) -> str:
        """Text of `ids`; see `Tokenizer.decode`."""
        data = b"".join([self.token_bytes(i, special=not skip_special) for i in ids])
        if self.space_prefix and not continuation:
            data = data.removeprefix(b" ")
        return data.decode(errors="replace")

    def token_bytes(self, id: int, *, special: bool = False) -> bytes:
        """Bytes that one token stands for; b"" for control tokens unless `special`."""
        if not 0 <= id < self.vocab_size:
            raise InvalidParameterError(f"token id {id} is outside the vocabulary of {self.vocab_size} tokens")
        if id in self._control_ids and not special:
            return b""
        return self._bytes(id)

    def is_special(self, id: int) -> bool:
        """Whether this is a control token."""
        return id in self._control_ids

    def find(self, text: str) -> int | None:
        """Id of the control or added token with exactly this text."""
        found = self._specials.control.get(text)
        return found if found is not None else self._specials.user.get(text)

    def _name(self, id: int | None) -> str:
        return "" if id is None else self._bytes(id).decode(errors="replace")

    @abstractmethod
    def _encode_plain(self, text: str, after_special: bool, ids: list[int]) -> None:
        """Appends the ids of a text without special tokens; `after_special`: it opens the text or follows one."""

    def _bytes(self, id: int) -> bytes:
        """The bytes of a token below `vocab_size`, of a control token its name."""
        return bytes(self._pieces[self._offset[id] : self._offset[id + 1]])


def _valid(text: str) -> str:
    """The text with surrogate pairs joined and lone surrogates replaced: what can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
