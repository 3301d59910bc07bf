# SPDX-License-Identifier: Apache-2.0
"""On an emulated processor: the bits of every other machine, from the kernels that this one should use."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import smepilot as sp
from smepilot import _native
from smepilot.runtime.tiers import usable_tiers
from smepilot.types import PromptClass
from tests.arm import smollm2
from tests.sdk.tiny import PROMPT, RESTLESS, VARIED

TIERS = os.environ["SMEPILOT_TEST_ARM"].split(",")
MATRIX = [tier for tier in TIERS if tier.startswith("sme")]
CORES = [tier for tier in TIERS if tier not in MATRIX]
GOLDEN = json.loads(smollm2.GOLDEN.read_text())


def test_tiers_are_the_processors() -> None:
    """A tier that was lost on the way, or is not trusted, would make every other test here pass without it."""
    assert usable_tiers() == TIERS


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("prompt_class", smollm2.CLASSES)
def test_a_real_models_bits(prompt_class: PromptClass, threads: int) -> None:
    runner = smollm2.opened(prompt_class, threads=threads)
    try:
        assert smollm2.answer(runner) == GOLDEN[prompt_class]
        ran = runner.counts()
    finally:
        runner.close()
    tier = {kernel["name"]: kernel["tier"] for kernel in _native.kernels()}
    products = {tier[name] for name in ran if name.startswith("sp_gemm_")}
    assert {CORES[-1], *MATRIX[-1:]} <= products <= {"neon", CORES[-1], *MATRIX}


def test_engine_answers_streams_and_converses(tiny_llama3: Path) -> None:
    with sp.Engine.open(tiny_llama3, threads=2, ctx=256) as engine:
        whole = engine.complete(PROMPT, max_tokens=12, **RESTLESS)
        assert len(whole.tokens) == 12
        assert "".join(chunk.text for chunk in engine.stream(PROMPT, max_tokens=12, **RESTLESS)) == whole.text
        drawn = engine.complete(PROMPT, max_tokens=12, seed=3, **VARIED)
        assert engine.complete(PROMPT, max_tokens=12, seed=3, **VARIED).tokens == drawn.tokens
        with engine.session(system="Be brief.", **VARIED) as chat:
            first = chat.send("Hello", max_tokens=4)
            second = chat.send("Go on", max_tokens=4)
        assert second.usage.cached_tokens == first.usage.prompt_tokens + 3


def test_engine_cancels(tiny_llama3: Path) -> None:
    with sp.Engine.open(tiny_llama3, threads=2, ctx=512) as engine:
        with engine.stream(PROMPT, ignore_eos=True) as stream:
            next(stream)
        assert stream.completion is not None
        assert stream.completion.finish_reason == "cancelled"
        with pytest.raises(sp.ContextLengthError):
            engine.complete([5] * 600, max_tokens=1)
    with pytest.raises(sp.ClosedError):
        engine.complete(PROMPT)
