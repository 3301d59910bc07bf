# SPDX-License-Identifier: Apache-2.0
"""The class of prompts as users meet it: fixed at open, told by what ran, the same for one token at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smepilot as sp
from smepilot.engine import calibration
from tests import fetch
from tests.sdk.tiny import PROMPT, VARIED

TEXT = "It was the best of times, it was the worst of times. " * 3


@pytest.fixture(scope="module")
def model() -> Path:
    return fetch.tiny_llama3_gguf("Q4_0")


def opened(model: Path, prompt_class: Any, **options: Any) -> sp.Engine:
    return sp.Engine.open(model, prompt_class=prompt_class, **{"threads": 2, "ctx": 512, **options})


@pytest.fixture(scope="module")
def grouped(model: Path) -> Iterator[sp.Engine]:
    with opened(model, "grouped") as engine:
        yield engine


@pytest.fixture(scope="module")
def rowwise(model: Path) -> Iterator[sp.Engine]:
    with opened(model, "rowwise") as engine:
        yield engine


def ran_rowwise(engine: sp.Engine) -> int:
    return sum(count for name, count in engine.kernel_counts().items() if "_q8r_q8r_" in name)


def test_the_engine_tells(grouped: sp.Engine, rowwise: sp.Engine, tiny_llama3: Path) -> None:
    assert (grouped.prompt_class, rowwise.prompt_class) == ("grouped", "rowwise")
    with sp.Engine.open(tiny_llama3, threads=1) as engine:
        assert engine.prompt_class == "grouped"


def test_role_selects_the_class(grouped: sp.Engine, rowwise: sp.Engine) -> None:
    ids = rowwise.tokenize(TEXT)
    prompt, generated = rowwise.logits(ids), rowwise.logits(ids, role="generated")
    assert (generated == grouped.logits(ids)).all()
    assert (grouped.logits(ids, role="generated") == generated).all()
    assert (prompt != generated).any()
    assert (prompt == rowwise.logits(ids, role="prompt")).all()
    assert np.abs(prompt - generated).max() < 1.0  # another rounding, not another model


def test_perplexity_has_a_role(grouped: sp.Engine, rowwise: sp.Engine) -> None:
    generated = rowwise.perplexity(TEXT, role="generated", window=64)
    assert generated.nll == grouped.perplexity(TEXT, window=64).nll
    assert rowwise.perplexity(TEXT, window=64).nll != generated.nll


def test_answers_are_grouped(rowwise: sp.Engine) -> None:
    """Greedy tokens are those that the logits of prompt and generated roles, position by position, lead to."""
    answer = rowwise.complete(PROMPT, max_tokens=12, temperature=0, ignore_eos=True)
    before = ran_rowwise(rowwise)
    again = rowwise.complete(PROMPT, max_tokens=12, temperature=0, ignore_eos=True)
    once = ran_rowwise(rowwise) - before
    assert again.tokens == answer.tokens
    rowwise.complete(PROMPT, max_tokens=1, temperature=0, ignore_eos=True)
    assert ran_rowwise(rowwise) - before == 2 * once  # more tokens of an answer, no more rowwise products


def test_chunks_and_neighbours_change_nothing(model: Path, rowwise: sp.Engine) -> None:
    ids = rowwise.tokenize(TEXT)
    with opened(model, "rowwise", max_batch=7, threads=1) as other:
        assert (other.logits(ids) == rowwise.logits(ids)).all()
        streams = [other.stream(PROMPT, max_tokens=10, seed=i, **VARIED) for i in range(3)]
        together = [stream.result().tokens for stream in streams]
    alone = [rowwise.complete(PROMPT, max_tokens=10, seed=i, **VARIED).tokens for i in range(3)]
    assert together == alone


def test_a_session_continues_to_the_same_bits(rowwise: sp.Engine) -> None:
    """What a turn finds in its pages is what the whole conversation, computed anew, would have put there."""
    with rowwise.session(seed=3, max_tokens=8, **VARIED) as chat:
        chat.send("One.")
        second = chat.send("Two?")
        sequence = chat._sequence
        prompt, roles = list(sequence.tokens), bytes(sequence.roles)
        assert second.usage.cached_tokens > 0
        assert set(roles) == {0, 1}
    with rowwise.session(seed=3, max_tokens=8, **VARIED) as chat:
        chat.send("One.")
        chat._sequence.computed = 0  # as after its pages were taken by somebody else
        assert chat.send("Two?").tokens == second.tokens
        assert list(chat._sequence.tokens) == prompt


@pytest.mark.parametrize("bad", ["fast", "", None, "Rowwise"])
def test_what_is_no_class(model: Path, bad: Any) -> None:
    with pytest.raises(sp.InvalidParameterError, match="prompt_class is"):
        opened(model, bad)


@pytest.mark.parametrize("bad", ["system", None, 0])
def test_what_is_no_role(grouped: sp.Engine, bad: Any) -> None:
    with pytest.raises(sp.InvalidParameterError, match="role is"):
        grouped.logits([1, 2], role=bad)
    with pytest.raises(sp.InvalidParameterError, match="role is"):
        grouped.perplexity("two words", role=bad)


def test_rowwise_of_a_float_model(tiny_llama3: Path) -> None:
    with pytest.raises(sp.InvalidParameterError, match="no layer of this model is quantised"):
        opened(tiny_llama3, "rowwise")


def test_what_was_measured(model: Path, tiny_llama3: Path, tmp_path: Path) -> None:
    assert calibration(model, cache=tmp_path) is None
    with opened(model, "auto", cache=tmp_path) as engine:
        chosen = engine.prompt_class
    found = calibration(model, cache=tmp_path)
    assert found is not None
    assert (found.default, found.reason) == (chosen, None)
    assert found.loss is not None
    assert calibration(tiny_llama3, cache=tmp_path) is None
    (tmp_path / "rowwise.safetensors").write_bytes(b"nothing")
    assert calibration(model, cache=tmp_path) is None
