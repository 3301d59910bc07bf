# SPDX-License-Identifier: Apache-2.0
"""The runner's manners: arguments, limits, closing, cancelling, and what it does with what is not a number."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from smepilot import _native
from smepilot.errors import (
    CancelledError,
    ClosedError,
    ContextLengthError,
    InvalidParameterError,
    NotFoundError,
    OutOfMemoryError,
)
from smepilot.runtime.batch import Chunk
from smepilot.runtime.runner import Runner
from tests import fetch, random_llama
from tests.random_llama import Shape
from tests.rowwise import open_rowwise

TIERS = [tier["name"] for tier in _native.tiers() if tier["built"] and tier["supported"]]
IDS = list(range(0, 270, 2))


@pytest.fixture
def runner(tiny_llama3: Path) -> Iterator[Runner]:
    """A context of 300 tokens in steps of at most 100, on two threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SMEPILOT_ISA", raising=False)
        opened = Runner.open(tiny_llama3, threads=2, ctx=300, max_batch=100, pages=8)
    yield opened
    opened.close()


# ---- opening


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("threads", 0),
        ("threads", -1),
        ("threads", 257),
        ("ctx", 0),
        ("ctx", -5),
        ("max_batch", 0),
        ("max_batch", 1 << 17),
        ("pages", 0),
        ("pages", -3),
        ("kv_dtype", "int8"),
    ],
)
def test_bad_arguments(argument: str, value: Any, tiny_llama3: Path) -> None:
    with pytest.raises(InvalidParameterError, match=f"{argument} is {value!r}; it must be"):
        Runner.open(tiny_llama3, **{argument: value})


def test_context_beyond_the_models(tiny_llama3: Path) -> None:
    with pytest.raises(ContextLengthError, match=r"ctx is 4096, but .* at most 2048 tokens"):
        Runner.open(tiny_llama3, ctx=4096)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"absent\.gguf"):
        Runner.open(tmp_path / "absent.gguf")


@pytest.mark.parametrize("value", ["avx1024", "AVX2", "neon "])
def test_unknown_tier(value: str, tiny_llama3: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMEPILOT_ISA", value)
    with pytest.raises(InvalidParameterError, match=f"SMEPILOT_ISA={value}: .* use one of scalar"):
        Runner.open(tiny_llama3)


def test_empty_tier_means_all(tiny_llama3: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMEPILOT_ISA", "")
    Runner.open(tiny_llama3).close()


def test_more_pages_than_there_can_be(tiny_llama3: Path) -> None:
    """Address space for 2^24 pages may or may not be had; an error must be ours."""
    with suppress(OutOfMemoryError):
        Runner.open(tiny_llama3, pages=1 << 24).close()


# ---- closing


def test_closing(tiny_llama3: Path) -> None:
    runner = Runner.open(tiny_llama3)
    handle = runner.sequence()
    runner.forward([(handle, IDS)])
    runner.close()
    runner.close()
    with pytest.raises(ClosedError, match="after close"):
        runner.forward([(handle, [1])])
    with pytest.raises(ClosedError, match="after close"):
        _ = runner.metadata
    runner.cancel()
    handle.free()


# ---- limits


def test_context_overflow(runner: Runner) -> None:
    """Both numbers are said; the sequence is as it was and goes on."""
    handle = runner.sequence()
    (row,) = runner.forward([(handle, IDS * 2)])  # 270 of 300
    with pytest.raises(ContextLengthError, match="405 tokens do not fit the context of 300"):
        runner.forward([(handle, IDS)])
    assert handle.length == 270
    handle.truncate(269)
    assert runner.forward([(handle, IDS[-1:])]).tobytes() == row.tobytes()


def test_context_overflow_in_a_step(runner: Runner) -> None:
    """The native side checks too: pages enough do not make a context longer."""
    pages = np.array([runner.kv.alloc() for _ in range(5)], np.int32)  # 320 positions
    with pytest.raises(ContextLengthError, match="301 tokens do not fit the context of 300"):
        runner.step([Chunk(pages, 300, np.array([1], np.int32))])
    runner.step([Chunk(pages, 299, np.array([1], np.int32))])


def test_pages_run_out(runner: Runner) -> None:
    first, second = runner.sequence(), runner.sequence()
    runner.forward([(first, IDS * 2)], "none")
    with pytest.raises(OutOfMemoryError, match="all 8 KV pages are in use"):
        runner.forward([(second, IDS * 2)], "none")
    first.free()
    second.truncate(0)
    runner.forward([(second, IDS * 2)], "none")
    second.free()
    assert runner.kv.free == runner.kv.total == 8


@pytest.mark.parametrize("token", [-1, 279, 1 << 30, 1 << 40, -(1 << 40)])
def test_token_ids(runner: Runner, token: int) -> None:
    with pytest.raises(InvalidParameterError, match="token id"):
        runner.forward([(runner.sequence(), [1, token, 2])])


def test_nothing_to_do(runner: Runner) -> None:
    for chunks in ([], [Chunk(np.empty(0, np.int32), 0, np.empty(0, np.int32))]):
        with pytest.raises(InvalidParameterError, match="needs chunks"):
            runner.step(chunks)
    for parts in ([], [(runner.sequence(), [])]):
        with pytest.raises(InvalidParameterError, match="needs sequences"):
            runner.forward(parts)


def test_steps_beyond_max_batch(runner: Runner) -> None:
    with pytest.raises(InvalidParameterError, match="1 to 100 tokens, not 101"):
        runner.step([runner.sequence().chunk([1] * 101, "none")])


@pytest.mark.parametrize("pages", [[], [0], [-1], [7], [8], [1 << 30]])
def test_pages_that_are_not_there(runner: Runner, pages: list[int]) -> None:
    """Too few for the positions, not in use, or no pages at all."""
    with pytest.raises(InvalidParameterError, match=r"page|block table"):
        runner.step([Chunk(np.array(pages, np.int32), 0, np.arange(65, dtype=np.int32))])


def test_native_batches_are_checked(runner: Runner) -> None:
    """Whatever arrays a caller makes up, `Program.run` refuses them or stays in its bounds."""
    page = runner.kv.alloc()
    good: dict[str, Any] = {
        "ids": [5, 6, 7],
        "positions": [0, 1, 0],
        "spans": [[0, 2, 0, 0], [2, 1, 0, 1]],
        "pages": [page, runner.kv.alloc()],
        "logit_rows": [0, 2],
    }

    def run(**changes: Any) -> NDArray[np.float32]:
        other = ("logits", "rowwise")
        arrays = {name: np.array(value, np.int32) for name, value in (good | changes).items() if name not in other}
        logits = changes.get("logits", np.empty((2, 279), np.float32))
        runner._program.run(**arrays, logits=logits, rowwise=changes.get("rowwise", 0))
        return np.asarray(logits)

    want = run().tobytes()
    for changes in (
        {"ids": [5, 6]},
        {"ids": [5, 6, 279]},
        {"positions": [0, 1]},
        {"positions": [0, 2, 0]},
        {"positions": [1, 2, 0]},
        {"spans": np.empty((0, 4))},
        {"spans": [[0, 2, 0, 0]]},  # a row of no sequence
        {"spans": [[0, 3, 0, 0], [2, 1, 0, 1]]},  # a row of two
        {"spans": [[1, 2, 0, 0], [0, 1, 0, 1]]},
        {"spans": [[0, 0, 0, 0], [0, 3, 0, 0]]},
        {"spans": [[0, -1, 0, 0], [0, 3, 0, 0]]},
        {"spans": [[0, 2, -1, 0], [2, 1, 0, 1]]},
        {"spans": [[0, 2, 0, -1], [2, 1, 0, 1]]},
        {"spans": [[0, 2, 0, 0], [2, 1, 0, 2]]},
        {"spans": [[0, 2, 2**31 - 2, 0], [2, 1, 0, 1]], "positions": [2**31 - 2, 2**31 - 1, 0]},
        {"spans": [[0, 2, 64, 0], [2, 1, 0, 1]], "positions": [64, 65, 0], "pages": [page, 8]},
        {"pages": [page]},
        {"pages": [page, 7]},
        {"pages": [page, -1]},
        {"logit_rows": [0, 3]},
        {"logit_rows": [-1]},
        {"logit_rows": [0, 1, 2]},  # into an array of two rows
        {"logit_rows": [0] * 4, "logits": np.empty((4, 279), np.float32)},  # more rows than tokens
        {"logits": np.empty((2, 278), np.float32)},
        {"logits": np.empty((1, 279), np.float32)},
        {"rowwise": 1},  # in the middle of a span
        {"rowwise": 4},
        {"rowwise": -1},
    ):
        with pytest.raises((InvalidParameterError, ContextLengthError)):
            run(**changes)
    for rowwise in (0, 2, 3):  # a model without rowwise form has one class
        assert run(rowwise=rowwise).tobytes() == want


# ---- cancelling


SLOW = Shape(d_model=512, heads=8, kv_heads=4, head_dim=64, d_ff=1536, layers=2)


def cancel_delays(runner: Runner) -> list[float]:
    """Seconds from `cancel` to the end of a step of 512 tokens, thrice; each time the next step gives the same bits."""
    delays, handle = [], runner.sequence()
    want = runner.forward([(handle, IDS[:20])], "all").tobytes()
    for _ in range(3):
        at: list[float] = []
        timer = threading.Timer(0.1, lambda at=at: (at.append(time.perf_counter()), runner.cancel()))
        handle.truncate(0)
        timer.start()
        with pytest.raises(CancelledError):
            runner.forward([(handle, [3] * 512)])
        delays.append(time.perf_counter() - at[0])
        timer.join()
        assert handle.length == 0
        assert runner.forward([(handle, IDS[:20])], "all").tobytes() == want
    runner.close()
    return delays


def test_cancel_inside_a_long_prefill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the scalar tier 512 tokens take seconds, and a tile up to a tenth of one."""
    monkeypatch.setenv("SMEPILOT_ISA", "scalar")
    runner = Runner.open(random_llama.write(tmp_path / "model.gguf", SLOW), threads=2)
    assert max(cancel_delays(runner)) < 1.0


@pytest.mark.slow
def test_cancel_is_quick(smollm2: Path) -> None:
    """50 ms is what a user may wait; the best of three, since other processes may hold the cores."""
    assert min(cancel_delays(Runner.open(smollm2, ctx=1024, prompt_class="grouped"))) < 0.05
    assert min(cancel_delays(open_rowwise(smollm2, ctx=1024))) < 0.05


def test_cancel_without_a_step(runner: Runner) -> None:
    handle = runner.sequence()
    want = runner.forward([(handle, IDS[:9])]).tobytes()
    handle.truncate(0)
    runner.cancel()
    assert runner.forward([(handle, IDS[:9])]).tobytes() == want


def test_cancel_at_any_moment(runner: Runner) -> None:
    """A step ends with CancelledError or with the right bits, wherever the cancel falls."""
    handle = runner.sequence()
    want = runner.forward([(handle, IDS[:90])]).tobytes()
    stop = threading.Event()

    def nag() -> None:
        while not stop.wait(0.0004):
            runner.cancel()

    thread = threading.Thread(target=nag)
    thread.start()
    completed = cancelled = 0
    deadline = time.monotonic() + 20
    while (completed < 20 or cancelled < 20) and time.monotonic() < deadline:
        handle.truncate(0)
        try:
            assert runner.forward([(handle, IDS[:90])]).tobytes() == want
            completed += 1
        except CancelledError:
            cancelled += 1
    stop.set()
    thread.join()
    assert completed
    assert cancelled


# ---- not a number


@pytest.mark.parametrize(
    ("dtype", "open_runner"),
    [
        *((dtype, Runner.open) for dtype in ("F32", "F16", "Q8_0", "Q4_1")),
        ("Q8_0", open_rowwise),
        ("Q4_1", open_rowwise),
    ],
)
def test_nan_in_the_embedding(
    dtype: str, open_runner: Callable[..., Runner], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token whose row is NaN spoils its sequence from its step on, and nothing else; alike on every tier.

    Rows before it in the same step may be spoilt too: attention multiplies keys that a row cannot see by zero.
    """
    shape = Shape(layers=2, tied=False)
    weights = random_llama.tensors(shape)
    types = {name: dtype for name, values in weights.items() if values.ndim > 1}
    weights["token_embd.weight"][8] = np.nan
    types["token_embd.weight"] = "F32"
    path = random_llama.write(tmp_path / "model.gguf", shape, weights=weights, dtype=types)
    sound, spoilt = [1, 2, 3, 4, 5], [6, 8, 7]
    for tier in TIERS:
        monkeypatch.setenv("SMEPILOT_ISA", tier)
        runner = open_runner(path, threads=2)
        mine, other = runner.sequence(), runner.sequence()
        assert np.isfinite(runner.forward([(mine, sound)], "all")).all()
        rows = runner.forward([(other, sound), (mine, spoilt)], "all")
        assert np.isfinite(rows[:5]).all()
        assert np.isnan(rows[6:]).all()
        mine.truncate(5)  # NaN keys and values stay behind its end, out of sight
        again = runner.forward([(mine, [9, 10])], "all")
        other.truncate(5)
        assert again.tobytes() == runner.forward([(other, [9, 10])], "all").tobytes()
        assert np.isfinite(again).all()
        runner.close()


def test_nan_in_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of the output matrix is one column of logits."""
    shape = Shape(tied=False)
    weights = random_llama.tensors(shape)
    weights["output.weight"][17, 3] = np.nan
    path = random_llama.write(tmp_path / "model.gguf", shape, weights=weights)
    for tier in TIERS:
        monkeypatch.setenv("SMEPILOT_ISA", tier)
        runner = Runner.open(path)
        logits = runner.forward([(runner.sequence(), IDS)], "all")
        runner.close()
        assert np.isnan(logits[:, 17]).all()
        assert np.isfinite(np.delete(logits, 17, axis=1)).all()


# ---- reports


def test_counts_and_seconds(runner: Runner) -> None:
    assert runner.counts() == {}
    runner.forward([(runner.sequence(), IDS)])
    first = runner.counts()
    runner.forward([(runner.sequence(), IDS)])
    assert {name: 2 * calls for name, calls in first.items()} == runner.counts()
    assert set(first) <= {kernel["name"] for kernel in _native.kernels()}
    assert runner.seconds().keys() >= {"embed", "norm", "qkv", "attention", "project", "gate_up", "logits"}
    assert runner.seconds()["qkv"] > 0


def test_the_plan_explains_itself() -> None:
    runner = Runner.open(fetch.tiny_llama3_gguf("Q4_0"), threads=1, ctx=256, max_batch=32)
    text = runner.plan.explain()
    runner.close()
    for word in ("embed", "qkv", "attention", "counters", "gate_up", "logits", "Q4_0", "arena", "panels"):
        assert word in text
