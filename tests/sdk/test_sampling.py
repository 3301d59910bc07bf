# SPDX-License-Identifier: Apache-2.0
"""How answers are drawn: seeds, limits, penalties, bias, stop strings, and the ranges of parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smepilot as sp
from tests.sdk.tiny import PROMPT, RESTLESS, VARIED


def test_same_seed_same_text_and_the_seed_is_reported(engine: sp.Engine) -> None:
    drawn = engine.complete(PROMPT, max_tokens=40, **VARIED)
    again = engine.complete(PROMPT, max_tokens=40, seed=drawn.seed, **VARIED)
    other = engine.complete(PROMPT, max_tokens=40, seed=drawn.seed ^ 1, **VARIED)
    assert again.tokens == drawn.tokens
    assert other.tokens != drawn.tokens


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0},
        {"temperature": 1e-6},
        {"temperature": 1e-30},
        {"temperature": 6.0, "top_k": 1},
        {"temperature": 6.0, "top_p": 1e-6},
        {"temperature": 6.0, "min_p": 1.0},
    ],
    ids=str,
)
def test_the_likeliest_token_by_many_ways(engine: sp.Engine, options: dict[str, Any]) -> None:
    expected = engine.complete(PROMPT, max_tokens=30, **RESTLESS).tokens
    assert engine.complete(PROMPT, max_tokens=30, seed=3, **RESTLESS | options).tokens == expected


@pytest.mark.parametrize("top_k", [0, -1, 279, 280, 10**9])
def test_top_k_beyond_the_vocabulary_keeps_all(engine: sp.Engine, top_k: int) -> None:
    wide: Any = VARIED | {"max_tokens": 30, "seed": 5}
    all_tokens = engine.complete(PROMPT, **wide | {"top_k": 279}).tokens
    assert engine.complete(PROMPT, **wide | {"top_k": top_k}).tokens == all_tokens


def test_bias_forbids_and_forces(engine: sp.Engine) -> None:
    free = engine.complete(PROMPT, max_tokens=10, temperature=0).tokens
    banned = engine.complete(PROMPT, max_tokens=10, temperature=0, logit_bias={free[0]: -np.inf}).tokens
    assert free[0] not in banned
    assert set(engine.complete(PROMPT, max_tokens=10, temperature=0, logit_bias={65: 1e6}).tokens) == {65}


def test_penalties_reduce_repetition(engine: sp.Engine) -> None:
    def distinct(**options: Any) -> int:
        answer = engine.complete(PROMPT, max_tokens=60, temperature=0, ignore_eos=True, **options)
        return len(set(answer.tokens))

    plain = distinct()
    assert distinct(repetition_penalty=5.0) > plain
    assert distinct(frequency_penalty=5.0) > plain
    assert distinct(presence_penalty=50.0) > plain


def test_a_frequency_penalty_beyond_every_gap_never_repeats(engine: sp.Engine) -> None:
    answer = engine.complete(PROMPT, max_tokens=100, temperature=0, ignore_eos=True, frequency_penalty=1e4)
    assert len(set(answer.tokens)) == 100


def test_ignore_eos_never_ends(engine: sp.Engine) -> None:
    hot: Any = VARIED | {"temperature": 1e4}  # every token is as likely as any other
    answer = engine.complete(PROMPT, max_tokens=900, seed=1, **hot)
    assert (answer.finish_reason, len(answer.tokens)) == ("length", 900)
    assert 277 not in answer.tokens
    answer = engine.complete(PROMPT, max_tokens=900, seed=1, **hot | {"ignore_eos": False})
    assert answer.finish_reason == "stop"
    assert 277 not in answer.tokens


@pytest.mark.parametrize("length", [1, 2, 3, 6])
def test_stop_strings_neither_leak_nor_lose_text(engine: sp.Engine, length: int) -> None:
    options: Any = VARIED | {"max_tokens": 100, "seed": 11}
    free = engine.complete(PROMPT, **options)
    at = next(i for i in range(8, 90) if "\ufffd" not in free.text[i - 1 : i + length])
    stop = free.text[at : at + length]
    stopped = engine.complete(PROMPT, stop=["\0\0\0", stop], **options)
    assert stopped.text == free.text[: free.text.index(stop)]
    assert stopped.finish_reason == "stop"
    assert "".join(chunk.text for chunk in engine.stream(PROMPT, stop=stop, **options)) == stopped.text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", 0),
        ("max_tokens", 1.5),
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("temperature", "hot"),
        ("temperature", True),
        ("top_k", -2),
        ("top_p", 0),
        ("top_p", 1.1),
        ("min_p", -0.1),
        ("seed", -1),
        ("seed", 1 << 64),
        ("repetition_penalty", 0),
        ("presence_penalty", float("inf")),
        ("frequency_penalty", None),
        ("stop", ""),
        ("stop", ["a", 5]),
        ("stop", 5),
        ("ignore_eos", 1),
        ("logit_bias", 5),
        ("logit_bias", {-1: 1.0}),
        ("logit_bias", {1: float("inf")}),
    ],
)
def test_parameters_outside_their_range_are_named(name: str, value: object) -> None:
    with pytest.raises(sp.InvalidParameterError, match=name):
        sp.GenerateParams(**{name: value})  # type: ignore[arg-type]
