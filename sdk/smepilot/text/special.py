# SPDX-License-Identifier: Apache-2.0
"""Tokens with a meaning of their own, and how a text is cut where they are written.

Two groups, as in GGUF: *control* tokens (``<|im_end|>``) are read from text only when the caller allows it, *user
defined* ones (added words, runs of spaces) always. Where several could begin at one place the longest wins, and places
are taken from left to right, as in the tokenizers that models are trained with.

Vocabularies carry from 1 to 1,000 such tokens. An alternation of all of them as a regular expression takes Python
longer to compile than a prompt takes to encode, so the search goes from one possible first character to the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Specials(NamedTuple):
    """Special tokens of a vocabulary; `control` and `user` give ids by text."""

    bos: int | None
    eos: int | None
    unk: int | None
    eos_ids: tuple[int, ...]
    add_bos: bool
    control: Mapping[str, int]
    user: Mapping[str, int]

    def as_facts(self) -> dict[str, Any]:
        """The same as JSON values."""
        return self._asdict()

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Specials:
        """The reverse of `as_facts`."""
        return cls(**{**facts, "eos_ids": tuple(facts["eos_ids"])})


class Splitter:
    """Cuts texts at the tokens it was given."""

    def __init__(self, tokens: Mapping[str, int]) -> None:
        """`tokens`: id by text, texts not empty."""
        self._tokens = tokens
        lengths: dict[str, set[int]] = {}
        for text in tokens:
            lengths.setdefault(text[0], set()).add(len(text))
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}
        self._first = re.compile(f"[{re.escape(''.join(lengths))}]") if lengths else None

    def split(self, text: str) -> Iterator[str | int]:
        """The parts of `text` in order: token ids, and the non-empty texts between them."""
        done = position = 0
        while self._first is not None and (match := self._first.search(text, position)):
            position = match.start()
            token = self._longest_at(text, position)
            if token is None:
                position += 1
                continue
            if position > done:
                yield text[done:position]
            yield self._tokens[token]
            done = position = position + len(token)
        if done < len(text):
            yield text[done:]

    def _longest_at(self, text: str, position: int) -> str | None:
        for length in self._lengths[text[position]]:
            candidate = text[position : position + length]
            if candidate in self._tokens:
                return candidate
        return None
