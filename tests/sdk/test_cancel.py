# SPDX-License-Identifier: Apache-2.0
"""Ending answers early: from other threads, by leaving a stream, with asyncio."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from pathlib import Path

import pytest

import smepilot as sp
from tests.sdk.tiny import PROMPT, VARIED


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
