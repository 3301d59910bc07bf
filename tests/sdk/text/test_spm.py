# SPDX-License-Identifier: Apache-2.0
"""The ``llama`` kind: spaces in front, byte fallback, and vocabularies that sentencepiece's loader would refuse."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smepilot.errors import TokenizerError
from smepilot.text import from_metadata
from tests.sdk.text.samples import BOTCHAN, TEXTS, llama, tokenizer


def test_a_space_goes_in_front_and_comes_off_again() -> None:
    subject = from_metadata(llama())
    ids = subject.encode("abc", add_special=False)
    assert [subject.token_bytes(i) for i in ids] == [b" abc"]
    assert subject.decode(ids) == "abc"
    assert subject.decode(ids, continuation=True) == " abc"
    assert subject.decode(subject.encode(" abc")) == " abc"


def test_a_file_may_forbid_the_space() -> None:
    subject = from_metadata(llama(add_space_prefix=False))
    ids = subject.encode("abc", add_special=False)
    assert [subject.token_bytes(i) for i in ids] == [b"abc"]
    assert subject.decode([*ids, *subject.encode(" abc", add_special=False)]) == "abc abc"


def test_the_space_also_follows_special_tokens() -> None:
    subject = from_metadata(llama())
    assert subject.encode("<s>abc</s>ab") == [1, 267, 2, 265]


@pytest.mark.parametrize("text", TEXTS)
def test_nothing_is_lost(text: str) -> None:
    subject = from_metadata(llama())
    assert subject.decode(subject.encode(text)) == text


def test_a_chapter_survives() -> None:
    text = BOTCHAN.read_text()
    subject = tokenizer("llama-spm")
    assert subject.decode(subject.encode(text)) == text


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.characters(exclude_characters="▁", exclude_categories=["Cs"]), max_size=40))
def test_any_text_survives(text: str) -> None:
    """But for U+2581, which is sentencepiece's own way to write a space."""
    for name in ("llama-spm", "phi-3"):
        subject = tokenizer(name)
        assert subject.decode(subject.encode(text, parse_special=False)) == text


def test_without_all_bytes_the_rest_is_unknown() -> None:
    tokens = llama()["tokenizer.ggml.tokens"]
    tokens[3] = "<0xZZ>x"
    types = llama()["tokenizer.ggml.token_type"]
    types[3] = 1
    subject = from_metadata(llama(tokens=tokens, token_type=types))
    assert subject.encode("ab🦙", add_special=False) == [265, 0]


def test_without_an_unknown_token_such_text_is_left_out() -> None:
    types = [1, 3, 3] + [5] * 256 + [1] * 9
    subject = from_metadata(llama(token_type=types))
    assert subject.encode("ab🦙", add_special=False) == [265]


def test_several_unknown_tokens() -> None:
    types = llama()["tokenizer.ggml.token_type"]
    types[259 + 7] = 2  # "abc"
    subject = from_metadata(llama(token_type=types))
    assert subject.encode("ababab", add_special=False) == [265, 263, 263]


def test_a_token_of_nul() -> None:
    """llama.cpp issue 5112: such vocabularies exist."""
    tokens = llama()["tokenizer.ggml.tokens"]
    tokens[262] = "\0"
    for kind in (1, 3, 4):
        types = llama()["tokenizer.ggml.token_type"]
        types[262] = kind
        subject = from_metadata(llama(tokens=tokens, token_type=types, add_space_prefix=False))
        ids = subject.encode("a\0b", add_special=False)
        assert subject.decode(ids, skip_special=False) == "a\0b"


def test_scores_are_needed() -> None:
    with pytest.raises(TokenizerError, match=r"'tokenizer\.ggml\.scores' is missing"):
        from_metadata(llama(scores=None))
    with pytest.raises(TokenizerError, match=r"tokenizer\.ggml\.scores has 1 elements for 268 tokens"):
        from_metadata(llama(scores=[1.0]))
    with pytest.raises(TokenizerError, match=r"tokenizer\.ggml\.scores\[0\] is nan"):
        from_metadata(llama(scores=[float("nan")] * 268))


def test_bytes_must_be_written_as_bytes() -> None:
    types = llama()["tokenizer.ggml.token_type"]
    types[260] = 6
    with pytest.raises(TokenizerError, match="'a' marked as a byte"):
        from_metadata(llama(token_type=types))


def test_what_the_loader_refuses_is_a_tokenizer_error() -> None:
    types = llama()["tokenizer.ggml.token_type"]
    with pytest.raises(TokenizerError, match="sentencepiece refuses the vocabulary"):
        from_metadata(llama(token_type=types, unknown_token_id=3))  # the unknown is one of the 256 bytes
