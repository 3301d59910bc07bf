# SPDX-License-Identifier: Apache-2.0
"""Metadata that lies: each is a TokenizerError of one line that names the key and the way out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smepilot.errors import ModelError, TokenizerError
from smepilot.text import from_metadata
from tests.sdk.text.samples import gpt2, llama

TOKENS = gpt2()["tokenizer.ggml.tokens"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model": None}, "key 'tokenizer.ggml.model' is missing"),
        ({"model": "bert"}, "tokenizer.ggml.model is 'bert': only 'gpt2' and 'llama'"),
        ({"model": 7}, "tokenizer.ggml.model is 7"),
        ({"pre": ["smollm"]}, "tokenizer.ggml.pre is ['smollm'], not a name"),
        ({"tokens": None}, "key 'tokenizer.ggml.tokens' is missing"),
        ({"tokens": []}, "tokenizer.ggml.tokens is empty"),
        ({"tokens": "abc"}, "tokenizer.ggml.tokens is 'abc', an array was expected"),
        ({"tokens": 3}, "tokenizer.ggml.tokens is 3, an array was expected"),
        ({"tokens": ["a", 5]}, "tokenizer.ggml.tokens[1] is 5"),
        ({"tokens": [*TOKENS, "hello"]}, "tokenizer.ggml.tokens holds 'hello' twice, as 259 and 263"),
        ({"token_type": [1]}, "tokenizer.ggml.token_type has 1 elements for 263 tokens"),
        ({"token_type": ["x"] * 263}, "tokenizer.ggml.token_type[0] is 'x'"),
        ({"token_type": 1}, "tokenizer.ggml.token_type is 1, an array was expected"),
        ({"merges": None}, "key 'tokenizer.ggml.merges' is missing"),
        ({"merges": ["h e", "h zz"]}, "tokenizer.ggml.merges[1] is 'h zz', but there is no token 'zz'"),
        ({"merges": ["h x"]}, "tokenizer.ggml.merges[0] is 'h x', but there is no token 'hx'"),
        ({"merges": ["hello"]}, "tokenizer.ggml.merges[0] is 'hello', but there is no token ''"),
        ({"merges": [""]}, "tokenizer.ggml.merges[0] is '', but there is no token ''"),
        ({"bos_token_id": 263}, "tokenizer.ggml.bos_token_id is 263, but there are only 263 tokens"),
        ({"eos_token_id": -2}, "tokenizer.ggml.eos_token_id is -2"),
        ({"eot_token_id": "x"}, "tokenizer.ggml.eot_token_id is 'x', not a token id"),
        ({"eom_token_id": 1.5}, "tokenizer.ggml.eom_token_id is 1.5, not a token id"),
        ({"unknown_token_id": True}, "tokenizer.ggml.unknown_token_id is True, not a token id"),
        ({"add_bos_token": 5}, "tokenizer.ggml.add_bos_token is 5, not true or false"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(TokenizerError) as caught:
        from_metadata(gpt2(**changes))
    message = str(caught.value)
    assert says in message
    assert "\n" not in message
    assert any(way in message for way in ("convert the model again", "correct this key", "are supported"))


def test_oddities_of_sound_files() -> None:
    tokens = [*TOKENS, "", "héllo wörld", "\0"]
    types = np.array([1] * 260 + [3, 3, 4, 1, 1, 99], np.int32)
    subject = from_metadata(gpt2(tokens=tokens, token_type=types, eos_token_id=np.uint32(261), add_bos_token=np.True_))
    assert subject.vocab_size == 266
    assert subject.eos_ids == {261}
    assert subject.decode([264, 265]) == "héllo wörld\0"
    assert subject.encode("a\0", add_special=False) == [97, 0]


def test_tokens_that_nobody_uses_have_no_text() -> None:
    assert from_metadata(gpt2(token_type=[1] * 259 + [5, 3, 3, 4])).decode([259, 104]) == "h"


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats()
    | st.text(max_size=5)
    | st.lists(st.text(max_size=4), max_size=300)
    | st.lists(st.integers(-5, 300), max_size=300)
    | st.lists(st.floats(), max_size=5)
)
KEYS = ["model", "pre", "tokens", "token_type", "scores", "merges", "bos_token_id", "eos_token_id", "unknown_token_id"]
KEYS += ["eot_token_id", "add_bos_token", "add_space_prefix"]


@settings(max_examples=300, deadline=None)
@given(changes=st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1, max_size=4), text=st.text(max_size=8))
def test_no_metadata_does_worse(changes: dict[str, Any], text: str) -> None:
    for sound in (gpt2, llama):
        try:
            subject = from_metadata(sound(**changes))
        except ModelError:
            continue
        ids = subject.encode(text)
        assert all(0 <= i < subject.vocab_size for i in ids)
        subject.decode(ids, skip_special=False)
