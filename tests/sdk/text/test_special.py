# SPDX-License-Identifier: Apache-2.0
"""Special tokens: where a text is cut, which of them end a turn, and BOS exactly once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smepilot.text import from_metadata
from smepilot.text.special import Splitter
from tests.sdk.text.samples import gpt2, llama


def test_the_longest_token_wins_and_the_leftmost_goes_first() -> None:
    splitter = Splitter({"<a>": 1, "<a><b>": 2, "  ": 3, "    ": 4, "b><": 5})
    assert list(splitter.split("x<a><b>y<a>")) == ["x", 2, "y", 1]
    assert list(splitter.split("      ")) == [4, 3]
    assert list(splitter.split("<b><a>")) == ["<", 5, "a>"]
    assert list(splitter.split("")) == []


def test_without_tokens_a_text_stays_whole() -> None:
    assert list(Splitter({}).split("<a>")) == ["<a>"]


@given(
    tokens=st.lists(st.text("<|a>", min_size=1, max_size=4), max_size=6, unique=True),
    text=st.text("<|a> ]^\\", max_size=30),
)
def test_parts_make_up_the_text(tokens: list[str], text: str) -> None:
    parts = list(Splitter({token: i for i, token in enumerate(tokens)}).split(text))
    assert "".join(part if isinstance(part, str) else tokens[part] for part in parts) == text
    assert not any(token in part for part in parts if isinstance(part, str) for token in tokens)


@pytest.mark.parametrize(
    ("text", "ids"),
    [("hello", [260, 259]), ("<|im_start|>hello", [260, 259]), ("", [260]), ("hello<|im_start|>", [260, 259, 260])],
)
def test_bos_is_there_exactly_once(text: str, ids: list[int]) -> None:
    subject = from_metadata(gpt2(add_bos_token=True))
    assert subject.encode(text) == ids


def test_bos_only_where_it_is_wanted_and_known() -> None:
    assert from_metadata(gpt2()).encode("hello") == [259]
    assert from_metadata(gpt2(add_bos_token=True)).encode("hello", add_special=False) == [259]
    without = from_metadata(gpt2(add_bos_token=True, bos_token_id=None))
    assert (without.bos_id, without.bos_token, without.add_bos) == (None, "", False)
    assert without.encode("hello") == [259]


def test_defaults_follow_the_kind() -> None:
    assert from_metadata(gpt2()).add_bos is False
    assert from_metadata(gpt2(pre="llama-bpe")).add_bos is True
    assert from_metadata(gpt2(pre="llama-bpe", add_bos_token=False)).add_bos is False
    subject = from_metadata(llama())
    assert (subject.add_bos, subject.bos_token, subject.eos_token) == (True, "<s>", "</s>")
    plain = from_metadata(llama(token_type=[2, 1, 1] + [6] * 256 + [1] * 9))
    assert (plain.add_bos, plain.bos_id, plain.eos_ids) == (False, None, frozenset())


def test_every_token_that_ends_a_turn() -> None:
    tokens = gpt2()["tokenizer.ggml.tokens"]
    tokens[256:260] = ["<|eot_id|>", "<|endoftext|>", "<|return|>", "<|end|>"]
    keys = {"tokens": tokens, "merges": [], "token_type": None}
    assert from_metadata(gpt2(**keys)).eos_ids == {256, 259, 261}
    assert from_metadata(gpt2(**keys, eos_token_id=257)).eos_ids == {256, 257, 259, 261}
    assert from_metadata(gpt2(**keys, eot_token_id=5, eom_token_id=6)).eos_ids == {5, 6, 256, 259, 261}


def test_structural_tokens_do_not_end_a_turn() -> None:
    """In the harmony format <|end|> closes a message of several."""
    tokens = gpt2()["tokenizer.ggml.tokens"]
    tokens[256:259] = ["<|end|>", "<|return|>", "<|call|>"]
    assert from_metadata(gpt2(tokens=tokens, merges=[], eos_token_id=257)).eos_ids == {257, 261}


def test_without_types_the_known_ones_are_control_tokens() -> None:
    subject = from_metadata(gpt2(token_type=None))
    assert subject.encode("<|im_start|>hello<|im_end|>") == [260, 259, 261]
    assert subject.decode([260, 259, 261]) == "hello"


@pytest.mark.parametrize("none", [-1, 0xFFFFFFFF])
def test_ids_that_mean_none(none: int) -> None:
    assert from_metadata(gpt2(bos_token_id=none)).bos_id is None
