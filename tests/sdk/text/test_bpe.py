# SPDX-License-Identifier: Apache-2.0
"""Byte-level BPE against the `tokenizers` package, which is built here the usual way from the same vocabularies."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, models, normalizers
from tokenizers import pre_tokenizers as pre

from smepilot.errors import InvalidParameterError
from smepilot.text import from_metadata
from smepilot.text.pretokenize import SCHEMES
from tests.sdk.text.samples import BOTCHAN, TEXTS, arrays, gpt2, tokenizer

# Written anew, as the models' tokenizer.json files have them.
WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
STEPS: dict[str, Any] = {
    "gpt-2": [pre.ByteLevel(add_prefix_space=False, use_regex=True)],
    "smollm": [pre.Digits(individual_digits=True), pre.ByteLevel(add_prefix_space=False, use_regex=True)],
    "starcoder": [pre.Digits(individual_digits=True), pre.ByteLevel(add_prefix_space=False, use_regex=True)],
    "llama-bpe": [
        pre.Split(tokenizers.Regex(rf"{SHORT}|{WORDS}|\p{{N}}{{1,3}}|{REST}"), "isolated"),
        pre.ByteLevel(add_prefix_space=False, use_regex=False),
    ],
    "qwen2": [
        pre.Split(tokenizers.Regex(rf"{SHORT}|{WORDS}|\p{{N}}|{REST}"), "isolated"),
        pre.ByteLevel(add_prefix_space=False, use_regex=False),
    ],
}


@cache
def oracle(name: str) -> tokenizers.Tokenizer:
    """The vocabulary in the `tokenizers` package."""
    lists = arrays(name)
    vocabulary = {text: i for i, text in enumerate(lists["tokens"])}
    merges = [tuple(line.split(" ")) for line in lists["merges"]]
    made = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=name == "llama-bpe"))
    made.pre_tokenizer = pre.Sequence(STEPS[name])
    if name == "qwen2":
        made.normalizer = normalizers.NFC()
    special = [text for text, kind in zip(lists["tokens"], lists["token_type"], strict=True) if kind == 3]
    made.add_special_tokens([AddedToken(text, normalized=False) for text in special])
    return made


def expected(name: str, text: str) -> list[int]:
    return oracle(name).encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("name", STEPS)
def test_awkward_texts(name: str) -> None:
    for text in TEXTS:
        assert tokenizer(name).encode(text, add_special=False) == expected(name, text), text


@pytest.mark.parametrize("name", STEPS)
def test_a_chapter(name: str) -> None:
    text = BOTCHAN.read_text()
    ids = tokenizer(name).encode(text, add_special=False)
    assert ids == expected(name, text)
    assert tokenizer(name).decode(ids) == text


@pytest.mark.parametrize("name", STEPS)
@settings(max_examples=150, deadline=None)
@given(text=st.text(max_size=40) | st.text(alphabet="aA'sS 0129\n\r\t.=é日🦙<|im_end|>", max_size=60))
def test_any_text(name: str, text: str) -> None:
    assert tokenizer(name).encode(text, add_special=False) == expected(name, text)


def test_any_merges() -> None:
    """Random merges over a small alphabet: chains, ties, merges that shadow each other."""

    @settings(max_examples=300, deadline=None)
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        tokens, merges = ["a", "b", "c"], []
        for _ in range(data.draw(st.integers(0, 12))):
            left, right = data.draw(st.sampled_from(tokens)), data.draw(st.sampled_from(tokens))
            if left + right not in tokens:
                tokens.append(left + right)
                merges.append((left, right))
        others = [c for c in gpt2()["tokenizer.ggml.tokens"][:256] if c not in "abc"]
        listed = [*tokens, *others]
        lines = [f"{left} {right}" for left, right in merges]
        mine = from_metadata(gpt2(tokens=listed, token_type=None, merges=lines, bos_token_id=None, eos_token_id=None))
        other = tokenizers.Tokenizer(models.BPE(vocab={text: i for i, text in enumerate(listed)}, merges=merges))
        word = data.draw(st.text("abc", max_size=30))
        assert mine.encode(word) == other.encode(word).ids

    run()


def test_half_a_megabyte_without_a_border() -> None:
    """The time grows with n log n: a square would take hours here."""
    assert from_metadata(gpt2()).encode("hello" * 100_000, add_special=False) == [259] * 100_000


def test_control_tokens_are_read_only_when_asked() -> None:
    subject = from_metadata(gpt2())
    assert subject.encode("<|im_end|>hello<added>") == [261, 259, 262]
    spelled = subject.encode("<|im_end|>hello<added>", parse_special=False)
    assert 261 not in spelled
    assert spelled[-2:] == [259, 262]
    assert subject.decode(spelled) == "<|im_end|>hello<added>"


def test_decode_leaves_control_tokens_out() -> None:
    subject = from_metadata(gpt2())
    assert subject.decode([260, 259, 261, 262]) == "hello<added>"
    assert subject.decode([260, 259, 261], skip_special=False) == "<|im_start|>hello<|im_end|>"
    assert subject.token_bytes(261) == b""
    assert subject.token_bytes(261, special=True) == b"<|im_end|>"
    assert subject.is_special(261)
    assert not subject.is_special(262)
    assert subject.find("<|im_end|>") == 261
    assert subject.find("hello") is None


@pytest.mark.parametrize("id", [-1, 263])
def test_an_id_outside_the_vocabulary(id: int) -> None:
    with pytest.raises(InvalidParameterError, match=f"token id {id} is outside the vocabulary of 263"):
        from_metadata(gpt2()).decode([id])


def test_tokens_may_be_parts_of_characters() -> None:
    subject = from_metadata(gpt2())
    ids = subject.encode("🦙", add_special=False)
    assert [subject.token_bytes(i) for i in ids] == [b"\xf0", b"\x9f", b"\xa6", b"\x99"]
    assert subject.decode(ids[:3]) == "\ufffd"


def test_surrogates_are_joined_or_replaced() -> None:
    subject = from_metadata(gpt2())
    assert subject.decode(subject.encode("\ud83e\udd99 \ud83e!")) == "🦙 \ufffd!"


def test_bytes_that_a_vocabulary_lacks(caplog: pytest.LogCaptureFixture) -> None:
    tokens = ["?" * 9 if c == "q" else c for c in gpt2()["tokenizer.ggml.tokens"]]
    with caplog.at_level(logging.WARNING):
        assert from_metadata(gpt2(tokens=tokens)).encode("aqb") == [97, 98]
    assert caplog.messages == ["b'aqb' holds bytes that this model has no token for; they are left out"]


def test_whole_words_win_over_merges() -> None:
    """Llama 3 has tokens that its merges never reach."""
    unreachable = gpt2()["tokenizer.ggml.tokens"]
    unreachable[0] = "xyz"
    assert from_metadata(gpt2(tokens=unreachable, pre="llama-bpe")).encode("xyz", add_special=False) == [0]
    assert from_metadata(gpt2(tokens=unreachable, pre="qwen2")).encode("xyz") == [120, 121, 122]


@pytest.mark.parametrize("pre_name", SCHEMES)
def test_no_scheme_loses_text(pre_name: str) -> None:
    subject = from_metadata(gpt2(pre=pre_name))
    for text in TEXTS:
        if not SCHEMES[pre_name].nfc:
            assert subject.decode(subject.encode(text)) == text


def test_an_unknown_scheme_warns_and_says_what_it_assumes(caplog: pytest.LogCaptureFixture) -> None:
    from_metadata(gpt2(pre="wonder-bpe"))
    assert "'wonder-bpe' is not known: assuming 'default' word boundaries" in caplog.text


def test_a_missing_scheme_warns(caplog: pytest.LogCaptureFixture) -> None:
    from_metadata(gpt2(pre=None))
    assert "'tokenizer.ggml.pre' is missing" in caplog.text
    assert "assuming 'default' word boundaries" in caplog.text
