# SPDX-License-Identifier: Apache-2.0
"""Reads and checks ``tokenizer.ggml.*``: nothing in a model file is believed, and what is refused is named.

Runs only when a tokenizer is built, not when it comes from the cache. Two kinds of oddity occur in sound files and are
accepted: empty tokens (they get the name llama.cpp gives them, and can never match), and ids of -1 for "none".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smepilot.errors import TokenizerError
from smepilot.text.special import Specials

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # GGUF's token types, and sentencepiece's

_PREFIX = "tokenizer.ggml."
_ELEMENTS: dict[str, set[type]] = {"tokens": {str}, "merges": {str}, "token_type": {int}, "scores": {int, float}}
_NONE_ID = (-1, 0xFFFFFFFF)
# Tokens that end a turn by what they are called; files often name only one of a model's two or three.
_ENDERS = ("<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|eom_id|>", "<|end_of_text|>")


@dataclass(frozen=True)
class Vocabulary:
    """The checked vocabulary of a file.

    Attributes:
        tokens: text of each id, all different, none empty.
        types: GGUF token type of each id (`NORMAL` …); control tokens that the file marked as normal are put right.
        index: id by text.
        specials: the tokens with a meaning of their own.
    """

    tokens: list[str]
    types: list[int]
    index: dict[str, int]
    specials: Specials


def read(meta: Mapping[str, Any], *, bos: int | None, eos: int | None, unk: int | None, add_bos: bool) -> Vocabulary:
    """Reads tokens, types and special ids; the keywords are what holds where the file says nothing."""
    tokens = [text or f"[EMPTY_{i}]" for i, text in enumerate(array(meta, "tokens"))]
    if not tokens:
        raise TokenizerError(f"{_PREFIX}tokens is empty: convert the model again with its tokenizer")
    index = {text: i for i, text in enumerate(tokens)}
    if len(index) != len(tokens):
        _refuse_duplicates(tokens, index)
    size = len(tokens)
    types = _types(meta, size)
    defaults = {"bos_token_id": bos, "eos_token_id": eos, "unknown_token_id": unk}
    # A default holds only where the file does not say that this token is an ordinary one.
    usual = {key: i for key, i in defaults.items() if i is not None and i < size and types[i] in (CONTROL, UNKNOWN)}
    bos, eos, unk = (token_id(meta, key, size, usual.get(key)) for key in defaults)
    enders = [eos, *(token_id(meta, key, size) for key in ("eot_token_id", "eom_token_id"))]
    enders += _enders_by_name(index)
    eos_ids = sorted({i for i in enders if i is not None})
    for i in (bos, *eos_ids):
        if i is not None and types[i] != UNKNOWN:
            types[i] = CONTROL
    specials = Specials(
        bos=bos,
        eos=eos,
        unk=unk,
        eos_ids=tuple(eos_ids),
        add_bos=flag(meta, "add_bos_token", add_bos) and bos is not None,
        control={tokens[i]: i for i, kind in enumerate(types) if kind in (CONTROL, UNKNOWN)},
        user={tokens[i]: i for i, kind in enumerate(types) if kind == USER_DEFINED},
    )
    return Vocabulary(tokens, types, index, specials)


def array(meta: Mapping[str, Any], name: str) -> list[Any]:
    """The array ``tokenizer.ggml.<name>`` as a list of str, int or float."""
    key = _PREFIX + name
    value = meta.get(key)
    if value is None:
        raise TokenizerError(f"key {key!r} is missing: convert the model again with its tokenizer")
    if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        raise TokenizerError(f"{key} is {value!r:.60}, an array was expected: convert the model again")
    items: list[Any] = value.tolist() if hasattr(value, "tolist") else list(value)
    expected = _ELEMENTS[name]
    if not {*map(type, items)} <= expected:
        i, item = next((i, item) for i, item in enumerate(items) if type(item) not in expected)
        raise TokenizerError(f"{key}[{i}] is {item!r:.60}, not what belongs there: convert the model again")
    return items


def token_id(meta: Mapping[str, Any], name: str, size: int, default: int | None = None) -> int | None:
    """The token id under ``tokenizer.ggml.<name>``, `default` where it is missing; checked against `size`."""
    value = meta.get(_PREFIX + name)
    if value is None:
        return default
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TokenizerError(f"{_PREFIX}{name} is {value!r:.60}, not a token id: correct this key in the file")
    number = value.__index__()
    if number in _NONE_ID:
        return None
    if not 0 <= number < size:
        raise TokenizerError(
            f"{_PREFIX}{name} is {number}, but there are only {size} tokens: correct this key in the file"
        )
    return int(number)


def flag(meta: Mapping[str, Any], name: str, default: bool) -> bool:
    """The truth value ``tokenizer.ggml.<name>``, `default` where it is missing."""
    value = meta.get(_PREFIX + name, default)
    if value not in (True, False):
        raise TokenizerError(f"{_PREFIX}{name} is {value!r:.60}, not true or false: correct this key in the file")
    return bool(value)


def _types(meta: Mapping[str, Any], size: int) -> list[int]:
    if meta.get(_PREFIX + "token_type") is None:
        return [NORMAL] * size
    types = array(meta, "token_type")
    if len(types) != size:
        raise TokenizerError(
            f"{_PREFIX}token_type has {len(types)} elements for {size} tokens: convert the model again"
        )
    # 0 is "undefined": an ordinary token nobody described. Later versions of the format may add types.
    return [kind if NORMAL <= kind <= BYTE else NORMAL for kind in types]


def _enders_by_name(index: Mapping[str, int]) -> list[int]:
    names = [name for name in _ENDERS if name in index]
    if "<|return|>" in index and "<|call|>" in index and "<|end|>" in names:
        names.remove("<|end|>")  # the harmony format: there <|end|> closes a message, and the turn goes on
    return [index[name] for name in names]


def _refuse_duplicates(tokens: Sequence[str], index: Mapping[str, int]) -> None:
    for i, text in enumerate(tokens):
        if index[text] != i:
            raise TokenizerError(
                f"{_PREFIX}tokens holds {text!r:.60} twice, as {i} and {index[text]}: convert the model again"
            )


def byte_value(text: str) -> int:
    """The byte that a token of type `BYTE` stands for, from its text "<0x0A>"."""
    try:
        if len(text) != 6 or not text.startswith("<0x") or not text.endswith(">"):
            raise ValueError(text)
        return int(text[3:5], 16)
    except ValueError:
        raise TokenizerError(
            f"{_PREFIX}tokens holds {text!r:.60} marked as a byte, but bytes are written '<0x0A>': convert the model "
            "again"
        ) from None
