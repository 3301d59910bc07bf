# SPDX-License-Identifier: Apache-2.0
"""Streaming against the whole: whatever the borders of tokens, the pieces add up to the text, cut at the stop."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from smepilot.errors import InvalidParameterError
from smepilot.text import StreamDecoder, Tokenizer, from_metadata
from tests.sdk.text.samples import gpt2, llama, tokenizer

BYTES = from_metadata(gpt2())
_ALPHABET = gpt2()["tokenizer.ggml.tokens"]


class Chunks(StreamDecoder):
    """A decoder fed with bytes: a token per chunk."""

    def __init__(self, chunks: list[bytes], stop: list[str]) -> None:
        tokens = [f"<|{i}|>" for i in range(len(chunks))]
        self.source = from_metadata(
            gpt2(tokens=[*_ALPHABET, *tokens], token_type=[1] * 260 + [3, 3, 4] + [1] * len(tokens))
        )
        self.source.token_bytes = lambda id, special=False: chunks[id - 263]  # type: ignore[method-assign]
        super().__init__(self.source, stop)
        self.ids = range(263, 263 + len(chunks))


def letter_by_letter(text: str, stops: list[str]) -> tuple[str, str | None]:
    """The definition: the text up to the stop string that is complete first, the longer of two that are at once."""
    for end in range(len(text) + 1):
        hits = [stop for stop in stops if text[:end].endswith(stop)]
        if hits:
            longest = max(hits, key=len)
            return text[: end - len(longest)], longest
    return text, None


def stream(subject: Tokenizer, ids: list[int], stop: list[str]) -> tuple[list[str], StreamDecoder]:
    decoder = StreamDecoder(subject, stop)
    return [*map(decoder.push, ids), decoder.flush()], decoder


PIECES = st.sampled_from(["a", "b", "ab", "é", "🦙", "\n", " ", "#", "User:", "👩‍👩‍👧"])


@settings(max_examples=400, deadline=None)
@given(
    text=st.lists(PIECES, max_size=20).map("".join),
    cuts=st.lists(st.integers(1, 5), max_size=60),
    stops=st.lists(st.lists(PIECES, min_size=1, max_size=3).map("".join), max_size=3),
)
@example(text="abcab", cuts=[1] * 5, stops=["cab", "bc"])
def test_pieces_add_up_to_the_text_before_the_stop(text: str, cuts: list[int], stops: list[str]) -> None:
    data, chunks = text.encode(), []
    for size in [*cuts, *[3] * len(text.encode())]:
        if data:
            chunks.append(data[:size])
            data = data[size:]
    decoder = Chunks(chunks, stops)
    pieces = [*map(decoder.push, decoder.ids), decoder.flush()]
    assert ("".join(pieces), decoder.stopped) == letter_by_letter(text, stops)
    assert "\ufffd" not in "".join(pieces)


@settings(max_examples=400, deadline=None)
@given(
    chunks=st.lists(st.binary(max_size=4), max_size=20),
    stop=st.lists(st.text("a\ufffdé", min_size=1, max_size=3), max_size=2),
)
def test_bytes_that_are_no_text(chunks: list[bytes], stop: list[str]) -> None:
    decoder = Chunks(chunks, stop)
    pieces = "".join([*map(decoder.push, decoder.ids), decoder.flush()])
    assert (pieces, decoder.stopped) == letter_by_letter(b"".join(chunks).decode(errors="replace"), stop)


@settings(max_examples=200, deadline=None)
@given(ids=st.lists(st.integers(0, 49151), max_size=30), stop=st.lists(st.text(min_size=1, max_size=2), max_size=3))
def test_random_tokens_of_a_real_vocabulary(ids: list[int], stop: list[str]) -> None:
    subject = tokenizer("smollm")
    pieces, decoder = stream(subject, ids, stop)
    assert ("".join(pieces), decoder.stopped) == letter_by_letter(subject.decode(ids, continuation=True), stop)


def test_an_emoji_comes_whole() -> None:
    pieces, _ = stream(BYTES, BYTES.encode("a🦙b"), [])
    assert pieces == ["a", "", "", "", "🦙", "b", ""]


def test_an_answer_may_end_inside_a_character() -> None:
    ids = BYTES.encode("a🦙")[:-1]
    pieces, _ = stream(BYTES, ids, [])
    assert pieces == ["a", "", "", "", "\ufffd"]
    assert "".join(pieces) == BYTES.decode(ids)


def test_only_what_may_become_a_stop_is_held_back() -> None:
    pieces, decoder = stream(BYTES, BYTES.encode("x\n\nUs\n\nUser: y"), ["\n\nUser:"])
    assert pieces[:8] == ["x", "", "", "", "", "\n\nUs", "", ""]
    assert "".join(pieces) == "x\n\nUs"
    assert decoder.stopped == "\n\nUser:"


def test_a_stop_with_a_leading_space() -> None:
    pieces, decoder = stream(BYTES, BYTES.encode("go STOP on"), [" STOP"])
    assert "".join(pieces) == "go"
    assert decoder.stopped == " STOP"
    assert decoder.push(104) == decoder.flush() == ""


def test_what_was_held_back_for_nothing_comes_at_the_end() -> None:
    pieces, decoder = stream(BYTES, BYTES.encode("go STO"), [" STOP"])
    assert pieces[-1] == " STO"
    assert decoder.stopped is None


def test_control_tokens_are_silent_unless_asked_for() -> None:
    assert "".join(stream(BYTES, [260, 259, 261], [])[0]) == "hello"
    decoder = StreamDecoder(BYTES, skip_special=False)
    assert "".join(map(decoder.push, [260, 259, 261])) == "<|im_start|>hello<|im_end|>"


def test_a_leading_space_belongs_to_a_continuation() -> None:
    subject = from_metadata(llama())
    ids = subject.encode("abc ab", add_special=False)
    assert "".join(stream(subject, ids, [])[0]) == subject.decode(ids, continuation=True) == " abc ab"
    decoder = StreamDecoder(subject, continuation=False)
    assert "".join(map(decoder.push, [1, *ids])) == subject.decode([1, *ids]) == "abc ab"


@pytest.mark.parametrize("stop", ["", [""], ["a", ""], [5]])
def test_stops_must_be_text(stop: list[str]) -> None:
    if stop == "":
        assert StreamDecoder(BYTES, [*stop]).stopped is None
        stop = [""]
    with pytest.raises(InvalidParameterError, match="must be a text of at least one character"):
        StreamDecoder(BYTES, stop)


def test_one_stop_may_come_bare() -> None:
    decoder = StreamDecoder(BYTES, "ell")
    assert decoder.push(259) == "h"
    assert decoder.stopped == "ell"
