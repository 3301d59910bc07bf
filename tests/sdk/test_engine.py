# SPDX-License-Identifier: Apache-2.0
"""The engine on a real model: ways to ask, sampling, cancelling, many threads at once, and bad input."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smepilot as sp

PROMPT = "Once upon a time there was a small model"

# The tiny model is sure of itself and repeats one letter; these make texts in which a mistake would show.
VARIED: Any = {"temperature": 6.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "ignore_eos": True}
RESTLESS: Any = {"temperature": 0, "frequency_penalty": 5.0, "ignore_eos": True}


@pytest.fixture(scope="module")
def engine(tiny_llama3: Path) -> Iterator[sp.Engine]:
    with sp.Engine.open(tiny_llama3, threads=2, ctx=1024) as engine:
        yield engine


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


# ---- ways to ask


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


# ---- sampling


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


# ---- together


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


# ---- cancelling


def test_cancel_from_another_thread_in_a_long_prefill(smollm2: Path) -> None:
    seconds = []
    with sp.Engine.open(smollm2, threads=1, ctx=2048, max_batch=2048) as engine:
        for _ in range(5):
            stream = engine.stream([5] * 2000, max_tokens=1)
            canceller = threading.Timer(0.1, stream.cancel)
            canceller.start()
            assert stream.result().finish_reason == "cancelled"
            canceller.join()
            began = time.perf_counter() - 0.1
            assert engine.complete("x", max_tokens=1, ignore_eos=True).usage.completion_tokens == 1
            assert stream.completion is not None
            seconds.append(stream.completion.usage.seconds.total - 0.1)
            assert time.perf_counter() - began < 2
    assert min(seconds) < 0.05


def test_engine_cancel_ends_everything_under_way(engine: sp.Engine) -> None:
    streams = [engine.stream(PROMPT, ignore_eos=True) for _ in range(4)]
    next(streams[0])
    engine.cancel()
    assert {stream.result().finish_reason for stream in streams} == {"cancelled"}
    assert engine.complete(PROMPT, max_tokens=3).finish_reason


def test_leaving_a_stream_cancels_it(engine: sp.Engine) -> None:
    with engine.stream(PROMPT, ignore_eos=True) as stream:
        first = next(stream)
    assert stream.completion is not None
    assert stream.completion.finish_reason == "cancelled"
    assert stream.completion.text.startswith(first.text)
    assert list(stream) == []
    stream = engine.stream(PROMPT, ignore_eos=True)
    del stream
    gc.collect()
    deadline = time.perf_counter() + 2
    while engine._loop._active and time.perf_counter() < deadline:
        time.sleep(0.001)
    assert not engine._loop._active


def test_astream_ends_with_its_task(engine: sp.Engine) -> None:
    async def talk() -> None:
        async for _ in engine.astream(PROMPT, ignore_eos=True):
            pass

    async def main() -> None:
        task = asyncio.create_task(talk())
        while not engine._loop._active:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        generator = engine.astream(PROMPT, ignore_eos=True)
        async for _ in generator:
            break
        await generator.aclose()  # type: ignore[attr-defined]

    asyncio.run(main())
    assert all(request.cancelled for request in list(engine._loop._active))


def test_many_astreams_at_once(engine: sp.Engine) -> None:
    async def one(number: int) -> str:
        return "".join(
            [chunk.text async for chunk in engine.astream(f"{number}", max_tokens=20, seed=number, **VARIED)]
        )

    async def main() -> list[str]:
        return await asyncio.gather(*(one(number) for number in range(8)))

    assert asyncio.run(main()) == [engine.complete(f"{n}", max_tokens=20, seed=n, **VARIED).text for n in range(8)]


# ---- logits and perplexity


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


def test_tokenize_and_back(engine: sp.Engine) -> None:
    text = "Hello, wörld 🙂 <|im_end|>"
    assert engine.detokenize(engine.tokenize(text), skip_special=False) == text
    assert len(engine.tokenize("<|im_end|>", parse_special=False)) > len(engine.tokenize("<|im_end|>")) == 1


# ---- bad input


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
        ("logit_bias", {-1: 1.0}),
        ("logit_bias", {1: float("inf")}),
    ],
)
def test_parameters_outside_their_range_are_named(name: str, value: object) -> None:
    with pytest.raises(sp.InvalidParameterError, match=name):
        sp.GenerateParams(**{name: value})  # type: ignore[arg-type]


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
