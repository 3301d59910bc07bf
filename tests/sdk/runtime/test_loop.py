# SPDX-License-Identifier: Apache-2.0
"""The runtime thread: cancelling, errors that reach only their request, sessions' pages, and the end."""

from __future__ import annotations

import os
import time
from queue import Empty, SimpleQueue

import numpy as np
import pytest

from smepilot.errors import ClosedError, NativeError, NumericError
from smepilot.runtime.request import Event, Finish, Scoring
from smepilot.runtime.score import perplexity, score, windows
from smepilot.runtime.sequence import Role, Sequence
from tests.sdk.runtime.driver import Job, running
from tests.sdk.runtime.standin import BROKEN, POISON, VOCAB, greedy, logits_after

SECOND_TURN = bytes([0, 0, 0, 1, 1, 1, 1, 0])  # a prompt of three tokens, an answer of four, one more of the prompt


def test_cancel_in_a_long_prefill_is_quick_and_the_next_request_works() -> None:
    seconds = []
    with running(token_seconds=0.002, ctx=4096, pages=80) as (loop, _):
        for _ in range(5):
            long = Job([1, 2, 3, 4] * 500, 5, capacity=4096)
            loop.submit(long)
            time.sleep(0.05)
            began = time.perf_counter()
            loop.cancel(long)
            loop.submit(after := Job([5], 1))
            assert after.finish()[0] == greedy([5], 1)
            seconds.append(time.perf_counter() - began)
            assert long.finish()[1].reason == "cancelled"
    assert min(seconds) < 0.05  # the neighbours of this test may slow some of them


def test_cancel_disturbs_nobody_else() -> None:
    with running(token_seconds=0.0005) as (loop, runner):
        others = [Job([salt, 2, 3], 30) for salt in range(3)]
        victims = [Job([9, salt] * 100, 30) for salt in range(5)]
        for job in [*others, *victims]:
            loop.submit(job)
        for victim in victims:
            time.sleep(0.005)
            loop.cancel(victim)
        for job in others:
            assert job.finish()[0] == greedy(job.tokens, 30)
    assert runner.kv.free == runner.kv.total


def test_cancel_all_reaches_running_and_waiting() -> None:
    with running(max_batch=2, token_seconds=0.001) as (loop, _):
        jobs = [Job([salt] * 50, 500) for salt in range(5)]
        for job in jobs:
            loop.submit(job)
        time.sleep(0.02)
        loop.cancel_all()
        assert [job.finish()[1].reason for job in jobs] == ["cancelled"] * 5


def test_cancelling_twice_or_too_late_does_nothing() -> None:
    with running() as (loop, _):
        job = Job([1], 2)
        loop.submit(job)
        job.finish()
        loop.cancel(job)
        with pytest.raises(Empty):
            job.events.get(timeout=0.02)


def test_nan_reaches_only_its_request() -> None:
    with running() as (loop, runner):
        good, bad = Job([1, 2], 20), Job([1, POISON], 20, keep=True)
        loop.submit(good)
        loop.submit(bad)
        assert good.finish()[0] == greedy([1, 2], 20)
        assert isinstance(bad.finish()[1].error, NumericError)
    assert runner.kv.free == runner.kv.total  # also the pages with NaN


def test_a_failing_step_reaches_only_its_request() -> None:
    with running(token_seconds=0.001) as (loop, _):
        good, bad = Job([1, 2], 20), Job([1, BROKEN], 20)
        loop.submit(good)
        loop.submit(bad)
        assert good.finish()[0] == greedy([1, 2], 20)
        error = bad.finish()[1].error
        assert isinstance(error, NativeError)
        assert "broken token" in str(error)


def test_an_end_token_ends_without_being_part_of_the_text() -> None:
    text = greedy([1, 2, 3], 8)
    with running() as (loop, _):
        job = Job([1, 2, 3], 8, ends=frozenset({text[5]}))
        loop.submit(job)
        tokens, finish = job.finish()
    assert tokens == text[: text.index(text[5])]
    assert finish.reason == "stop"


def test_a_kept_sequence_computes_only_what_is_new() -> None:
    sequence = Sequence()
    with running() as (loop, runner):
        first = Job([1, 2, 3], 4, sequence=sequence, keep=True)
        loop.submit(first)
        tokens, _ = first.finish()
        second = Job([1, 2, 3, *tokens, 7], 4, sequence=sequence, keep=True, roles=SECOND_TURN)
        loop.submit(second)
        assert second.finish()[0] == greedy(second.tokens, 4, SECOND_TURN)
        assert second.cached == 6  # the last token drawn was never computed
        loop.release(sequence)
        loop.submit(third := Job([1], 1))
        third.finish()
        assert runner.kv.free == runner.kv.total


def test_a_reclaimed_sequence_gives_the_same_text() -> None:
    """What had been computed as prompts and as answers is computed so again, in one step."""
    sequence = Sequence()
    with running(pages=4) as (loop, runner):
        first = Job([1, 2, 3], 4, sequence=sequence, keep=True, capacity=256)
        loop.submit(first)
        tokens, _ = first.finish()
        loop.submit(greedy_one := Job([4] * 250, 3, capacity=256))
        greedy_one.finish()
        second = Job([1, 2, 3, *tokens, 7], 4, sequence=sequence, keep=True, capacity=256, roles=SECOND_TURN)
        loop.submit(second)
        assert second.finish()[0] == greedy(second.tokens, 4, SECOND_TURN)
        assert second.cached == 0
        assert [3, 4, 1] in runner.steps


def test_a_prefix_computed_in_another_role_is_computed_again() -> None:
    sequence = Sequence()
    with running() as (loop, _):
        loop.submit(first := Job([1, 2, 3], 4, sequence=sequence, keep=True))
        tokens, _ = first.finish()
        loop.submit(second := Job([1, 2, 3, *tokens, 7], 4, sequence=sequence))  # the answer quoted, as a prompt
        assert second.finish()[0] == greedy(second.tokens, 4)
        assert second.cached == 3


def test_the_answer_ends_where_the_context_does() -> None:
    with running(ctx=64) as (loop, _):
        job = Job([1] * 60, 100, capacity=loop.capacity)
        loop.submit(job)
        tokens, finish = job.finish()
    assert tokens == greedy([1] * 60, 4)
    assert finish.reason == "length"


def test_a_small_pool_bounds_the_capacity() -> None:
    with running(ctx=1024, pages=3) as (loop, _):
        assert loop.capacity == 192


def test_scoring_returns_the_logits_of_every_position() -> None:
    tokens = [(3 * i) % 47 for i in range(150)]
    rows = np.empty((150, VOCAB), np.float32)
    with running() as (loop, runner):

        def keep(start: int, part: np.ndarray) -> None:
            rows[start : start + len(part)] = part

        score(loop, tokens, keep)
        assert (rows[-1] == logits_after(tokens)).all()
        loop.submit(Scoring(tokens, keep, (events := SimpleQueue[Event]()).put, role=Role.GENERATED))
        assert events.get(timeout=20) == Finish("stop")
        assert (rows[-1] == logits_after(tokens, b"\1" * 150)).all()
        score(loop, tokens, keep)
    assert (rows == np.array([logits_after(tokens[: i + 1]) for i in range(150)])).all()
    assert max(map(sum, runner.steps)) <= 64


def test_perplexity_does_not_depend_on_chunks() -> None:
    tokens = [(5 * i) % 47 for i in range(100)]
    expected = -np.mean(
        [
            np.log(np.exp(row[t] - row.max()) / np.exp(row - row.max()).sum())
            for row, t in ((logits_after(tokens[: i + 1]).astype(np.float64), tokens[i + 1]) for i in range(99))
        ]
    )
    with running(max_batch=7) as (loop, _):
        assert perplexity(loop, tokens, 1024) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("count", "size"), [(2, 2), (5, 2), (10, 10), (11, 10), (100, 10), (101, 7), (64, 3)])
def test_windows_score_every_token_but_the_first_once(count: int, size: int) -> None:
    scored = []
    for begin, end, first in windows(count, size):
        assert begin < first <= end <= begin + size
        scored += range(first, end)
    assert scored == list(range(1, count))


def test_close_ends_every_request_and_is_quick() -> None:
    with running(token_seconds=0.01) as (loop, runner):
        jobs = [Job([salt] * 200, 500) for salt in range(3)]
        for job in jobs:
            loop.submit(job)
        time.sleep(0.05)
        began = time.perf_counter()
        loop.close()
        assert time.perf_counter() - began < 0.5
        for job in jobs:
            assert isinstance(job.finish()[1].error, ClosedError)
        with pytest.raises(ClosedError, match="closed"):
            loop.submit(Job([1], 1))
        loop.close()
        assert runner.closed


def test_a_sink_that_fails_harms_nobody() -> None:
    def broken(_: object) -> None:
        raise RuntimeError("the reader is gone")

    with running() as (loop, _):
        lost = Scoring([1, 2, 3], lambda *_: None, broken)
        loop.submit(lost)
        loop.submit(job := Job([1], 3))
        assert job.finish()[0] == greedy([1], 3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is a POSIX call")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_child_gets_an_error_and_no_hang() -> None:
    with running() as (loop, _):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                loop.submit(Job([1], 1))
            except ClosedError as error:
                code = 0 if "fork" in str(error) else 2
            loop.close()
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        loop.submit(job := Job([1], 1))
        assert job.finish()[0] == greedy([1], 1)
