# SPDX-License-Identifier: Apache-2.0
"""Batches: every schedule gives every sequence the text it has alone, within the limits of batch and memory."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smepilot.runtime.kvcache import KvCache
from smepilot.runtime.scheduler import PREFILL_BESIDE_DECODE, Scheduler
from tests.sdk.runtime.driver import Job, running
from tests.sdk.runtime.standin import StandinPool, greedy


def prompt(length: int, salt: int = 0) -> list[int]:
    return [(7 * i + salt) % 48 for i in range(length)]


@pytest.mark.parametrize("max_batch", [1, 2, 7, 64, 512])
def test_many_sequences_get_the_text_they_have_alone(max_batch: int) -> None:
    with running(max_batch=max_batch, pages=64) as (loop, runner):
        jobs = [Job(prompt(length, salt), 20) for salt, length in enumerate([1, 5, 64, 65, 130, 300])]
        for job in jobs:
            loop.submit(job)
        for job in jobs:
            tokens, finish = job.finish()
            assert tokens == greedy(job.tokens, 20)
            assert finish.reason == "length"
    assert runner.kv.free == runner.kv.total


@settings(max_examples=25)
@given(
    lengths=st.lists(st.integers(1, 200), min_size=1, max_size=8),
    max_batch=st.integers(1, 100),
    pages=st.integers(5, 12),
)
def test_too_little_memory_changes_no_text(lengths: list[int], max_batch: int, pages: int) -> None:
    with running(max_batch=max_batch, pages=pages) as (loop, runner):
        jobs = [Job(prompt(length, salt), 70, capacity=loop.capacity) for salt, length in enumerate(lengths)]
        for job in jobs:
            loop.submit(job)
        for job in jobs:
            assert job.finish()[0] == greedy(job.tokens, 70)
    assert runner.kv.free == runner.kv.total


def test_preemption_happens_and_is_invisible() -> None:
    with running(pages=6, max_batch=64) as (loop, runner):
        jobs = [Job(prompt(60, salt), 130, capacity=loop.capacity) for salt in range(4)]
        for job in jobs:
            loop.submit(job)
        for job in jobs:
            assert job.finish()[0] == greedy(job.tokens, 130)
    assert sum(map(sum, runner.steps)) > 4 * (60 + 129)  # something was computed twice


def scheduler(max_batch: int, pages: int = 1000) -> Scheduler:
    return Scheduler(KvCache(StandinPool(pages)), max_batch)


def compute(batch: list[tuple[Job, int]]) -> None:
    for request, count in batch:
        request.sequence.computed += count
        if request.sequence.pending == 0:
            request.sequence.append(1)


def test_decodes_come_first_and_limit_what_prompts_get() -> None:
    plan = scheduler(512)
    old, new = Job(prompt(10), 99), Job(prompt(2000), 99)
    plan.add(old)
    compute(plan.next_batch())
    plan.add(new)
    assert plan.next_batch() == [(old, 1), (new, PREFILL_BESIDE_DECODE)]


def test_a_short_prompt_does_not_wait_for_a_long_one() -> None:
    plan = scheduler(128)
    long, short = Job(prompt(4000), 9), Job(prompt(10), 9)
    plan.add(long)
    compute(plan.next_batch())
    plan.add(short)
    assert plan.next_batch() == [(short, 10), (long, 118)]


def test_more_sequences_than_a_step_holds() -> None:
    plan = scheduler(4)
    jobs = [Job(prompt(3, salt), 9) for salt in range(10)]
    for job in jobs:
        plan.add(job)
    for _ in range(20):
        batch = plan.next_batch()
        assert 0 < sum(count for _, count in batch) <= 4
        compute(batch)


def test_admission_keeps_the_order_of_arrival() -> None:
    plan = scheduler(512, pages=8)
    first, large, small = Job(prompt(300), 9), Job(prompt(350), 9), Job(prompt(10), 9)
    for job in (first, large, small):
        plan.add(job)
    assert [request for request, _ in plan.next_batch()] == [first]  # `small` would fit, but does not overtake
    plan.remove(first, keep=False)
    assert {request for request, _ in plan.next_batch()} == {large, small}


def test_an_empty_scheduler_has_no_batch() -> None:
    plan = scheduler(8)
    assert not plan
    assert plan.next_batch() == []
