# SPDX-License-Identifier: Apache-2.0
"""The engine on a real model: ways to ask, many threads at once, logits, and what cannot be asked."""

from __future__ import annotations

import asyncio
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smepilot as sp
from tests.sdk.tiny import PROMPT, RESTLESS, VARIED


def greedy(engine: sp.Engine, tokens: list[int], count: int) -> list[int]:
    """What RESTLESS gives, from the logits of whole prefixes: no cache, no batch, no sampler."""
    text = list(tokens)
    penalties = np.zeros(engine.config.vocab_size, dtype=np.float32)
    penalties[277] = np.inf  # the end
    for _ in range(count):
        token = int((engine.logits(text)[-1] - penalties).argmax())
        penalties[token] += 5
        text.append(token)
    return text[len(tokens) :]


def test_greedy_text_is_that_of_the_logits(engine: sp.Engine) -> None:
    tokens = engine.tokenize(PROMPT)
    answer = engine.complete(PROMPT, max_tokens=40, **RESTLESS)
    assert list(answer.tokens) == greedy(engine, tokens, 40)
    assert len(set(answer.tokens)) > 5
    assert answer.finish_reason == "length"
    assert answer.text == engine.detokenize(answer.tokens)


def test_all_ways_give_the_same_text(engine: sp.Engine) -> None:
    options: Any = {"max_tokens": 60, "seed": 7, **VARIED}

    async def gather() -> list[sp.Chunk]:
        return [chunk async for chunk in engine.astream(PROMPT, **options)]

    whole = engine.complete(PROMPT, **options)
    streamed = list(engine.stream(PROMPT, **options))
    awaited = asyncio.run(gather())
    with_stop = engine.complete(PROMPT, stop="never in this text", **options)
    for chunks in (streamed, awaited):
        assert "".join(chunk.text for chunk in chunks) == whole.text
        assert [chunk.finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
        assert chunks[-1].completion is not None
        assert chunks[-1].completion.tokens == whole.tokens
    assert with_stop.text == whole.text
    assert engine.complete(engine.tokenize(PROMPT), **options).text == whole.text


def test_messages_go_through_the_template(engine: sp.Engine) -> None:
    messages = [{"role": "user", "content": "Hello"}]
    rendered = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    options: Any = {"max_tokens": 10, "temperature": 0}
    assert engine.complete(messages=messages, **options).tokens == engine.complete(rendered, **options).tokens


def test_usage_adds_up(engine: sp.Engine) -> None:
    answer = engine.complete(PROMPT, max_tokens=12, temperature=0, ignore_eos=True)
    usage = answer.usage
    assert usage.prompt_tokens == len(engine.tokenize(PROMPT))
    assert (usage.cached_tokens, usage.completion_tokens) == (0, 12)
    seconds = usage.seconds
    assert 0 < seconds.prefill < seconds.total
    assert 0 < seconds.decode < seconds.total
    assert seconds.template + seconds.tokenize + seconds.queue + seconds.prefill + seconds.decode <= seconds.total
    assert usage.time_to_first_token is not None
    assert usage.time_to_first_token <= seconds.total
    assert usage.generation_tokens_per_second == pytest.approx(11 / seconds.decode)
    assert usage.peak_memory_bytes is not None
    assert usage.peak_memory_bytes > 1e6
    assert (answer.energy, answer.energy_source) == (None, "none")
    assert answer.as_dict()["usage"]["seconds"]["total"] == seconds.total


def test_requests_of_many_threads_do_not_touch_each_other(engine: sp.Engine) -> None:
    prompts = [f"{number} green bottles" * (1 + number) for number in range(12)]
    alone = [engine.complete(p, max_tokens=25, seed=i, **VARIED).tokens for i, p in enumerate(prompts)]
    together: dict[int, tuple[int, ...]] = {}

    def ask(number: int) -> None:
        together[number] = engine.complete(prompts[number], max_tokens=25, seed=number, **VARIED).tokens

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [together[number] for number in range(12)] == alone


def test_little_memory_changes_no_text(engine: sp.Engine, tiny_llama3: Path) -> None:
    prompts = [f"{number} green bottles" for number in range(6)]
    alone = [engine.complete(p, max_tokens=200, seed=3, **VARIED).tokens for p in prompts]
    with sp.Engine.open(tiny_llama3, threads=1, ctx=512, pages=8, max_batch=16) as small:
        streams = [small.stream(p, max_tokens=200, seed=3, **VARIED) for p in prompts]
        assert [stream.result().tokens for stream in streams] == alone


def test_logits_do_not_depend_on_what_follows(engine: sp.Engine) -> None:
    tokens = engine.tokenize(PROMPT * 5)
    rows = engine.logits(tokens)
    assert rows.shape == (len(tokens), engine.config.vocab_size)
    assert rows.dtype == np.float32
    assert (engine.logits(tokens[:17]) == rows[:17]).all()
    assert engine.logits([]).shape == (0, engine.config.vocab_size)


def test_perplexity_is_that_of_the_logits(engine: sp.Engine) -> None:
    tokens = engine.tokenize(PROMPT * 4)
    rows = engine.logits(tokens).astype(np.float64)
    losses = [
        np.log(np.exp(row - row.max()).sum()) + row.max() - row[t] for row, t in zip(rows, tokens[1:], strict=False)
    ]
    result = engine.perplexity(PROMPT * 4)
    assert result.tokens == len(tokens) - 1
    assert result.nll == pytest.approx(np.mean(losses), abs=1e-6)
    assert result.value == pytest.approx(np.exp(result.nll))
    reports: list[float] = []
    windowed = engine.perplexity(tokens, window=32, on_progress=reports.append)
    assert windowed.tokens == result.tokens
    assert reports[-1] == 1.0
    assert all(a < b for a, b in pairwise(reports))


def test_perplexity_of_a_real_model_is_what_it_should_be(smollm2: Path) -> None:
    text = (Path(__file__).parent.parent / "data" / "smollm2" / "ppl_botchan.txt").read_text()
    with sp.Engine.open(smollm2) as real:
        result = real.perplexity(text)
    assert result.tokens == 1037
    assert result.value == pytest.approx(31.94, rel=0.012)  # of the float32 model with these weights


def test_tokenize_and_back(engine: sp.Engine) -> None:
    text = "Hello, wörld 🙂 <|im_end|>"
    assert engine.detokenize(engine.tokenize(text), skip_special=False) == text
    assert len(engine.tokenize("<|im_end|>", parse_special=False)) > len(engine.tokenize("<|im_end|>")) == 1


def test_a_prompt_beyond_the_context_names_both_numbers(engine: sp.Engine) -> None:
    with pytest.raises(sp.ContextLengthError, match=r"1024 tokens.*holds 1024"):
        engine.complete([1] * 1024)
    with pytest.raises(sp.ContextLengthError, match=r"5000 tokens.*holds 1024"):
        engine.logits([1] * 5000)
    answer = engine.complete([1] * 1020, max_tokens=50, ignore_eos=True)
    assert (answer.finish_reason, answer.usage.completion_tokens) == ("length", 4)


def test_a_prompt_beyond_the_pool_names_both_numbers(tiny_llama3: Path) -> None:
    with (
        sp.Engine.open(tiny_llama3, threads=1, ctx=1024, pages=2) as engine,
        pytest.raises(sp.OutOfMemoryError, match=r"200 tokens.*holds 128"),
    ):
        engine.complete([1] * 200)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prompt": ""}, "empty"),
        ({"prompt": []}, "empty"),
        ({"messages": []}, "empty"),
        ({"messages": ["hello"]}, "mapping"),
        ({"messages": [{"content": "x"}]}, "role"),
        ({}, "either"),
        ({"prompt": "x", "messages": [{"role": "user", "content": "x"}]}, "either"),
        ({"prompt": [279]}, "ids 0 to 278"),
        ({"prompt": [-1]}, "ids 0 to 278"),
        ({"prompt": [0.5]}, "integers"),
        ({"prompt": "x", "logit_bias": {279: 1.0}}, "ids 0 to 278"),
    ],
)
def test_what_cannot_be_asked(engine: sp.Engine, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(sp.InvalidParameterError, match=message):
        engine.complete(**arguments)


def test_a_closed_engine_says_so(tiny_llama3: Path) -> None:
    engine = sp.Engine.open(tiny_llama3, threads=1)
    stream = engine.stream(PROMPT, ignore_eos=True)
    session = engine.session()
    next(stream)
    engine.close()
    engine.close()
    with pytest.raises(sp.ClosedError):
        stream.result()
    for use in (lambda: engine.complete("x"), lambda: engine.logits([1]), lambda: session.send("x")):
        with pytest.raises(sp.ClosedError):
            use()
