# SPDX-License-Identifier: Apache-2.0
"""The pool as a Python object: its arguments, what it reports, and that nothing hangs however it ends.

What it computes is tested in C (tests/native/thread); what happens around it, in processes of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time

import pytest

from smepilot import _native, errors

SECONDS = 60


def run(code: str) -> str:
    """Runs `code` in a fresh interpreter; returns what it prints. A hang or a crash is a failure."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def wait_until_started(pool: _native.Pool) -> None:
    deadline = time.monotonic() + SECONDS
    while not all(worker["started"] for worker in pool.placement()):
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_default_is_the_usable_cores():
    with _native.Pool() as pool:
        assert pool.threads == _native.cpu_info()["usable"]
        assert not pool.closed
    assert pool.closed


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_placement_names_every_worker(threads):
    with _native.Pool(threads) as pool:
        wait_until_started(pool)
        workers = pool.placement()
    assert [worker["index"] for worker in workers] == list(range(threads))
    assert all(worker["kind"] == "core" and worker["active"] for worker in workers)
    assert workers[0]["cpu"] is None
    assert workers[0]["pin"] == "none"
    pinned = [worker["cpu"] for worker in workers if worker["cpu"] is not None]
    assert len(set(pinned)) == len(pinned)
    if threads > len(os.sched_getaffinity(0)):
        assert not pinned


def test_unpinned_on_request():
    with _native.Pool(2, pin=False) as pool:
        wait_until_started(pool)
        assert [worker["pin"] for worker in pool.placement()] == ["none", "none"]


def test_close_twice_and_counts_after():
    pool = _native.Pool(2, counters=3)
    pool.close()
    pool.close()
    assert pool.counts() == [0, 0, 0]
    assert not pool.placement()[1]["active"]
    assert _native.Pool(1, counters=0).counts() == []


@pytest.mark.parametrize("threads", [0, -1, 257, 10**30])
def test_thread_numbers_out_of_range(threads):
    with pytest.raises(errors.InvalidParameterError, match=r"use 1 to 256"):
        _native.Pool(threads)


@pytest.mark.parametrize("spin_us", [-1.0, 1e7, float("nan"), float("inf")])
def test_spin_times_out_of_range(spin_us):
    with pytest.raises(errors.InvalidParameterError, match=r"spin_us"):
        _native.Pool(1, spin_us=spin_us)


def test_many_pools_leave_no_threads():
    before = len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 0
    for _ in range(50):
        _native.Pool(4)  # ended by the last reference going
    if sys.platform == "linux":
        assert len(os.listdir("/proc/self/task")) <= before


def test_interpreter_exits_with_a_pool_alive():
    assert run("from smepilot import _native; pool = _native.Pool(3); print(pool.threads)") == "3"


def test_forked_child_ends_its_copy():
    code = """
        import os
        from smepilot import _native

        pool = _native.Pool(3)
        child = os.fork()
        if child == 0:
            pool.close()
            counts = pool.counts()
            del pool
            os._exit(0 if not any(counts) else 1)
        print(os.waitpid(child, 0)[1], pool.placement()[1]["active"])
    """
    assert run(code) == "0 True"


@pytest.mark.skipif(sys.platform != "linux", reason="needs an affinity to restrict")
def test_one_cpu_of_many():
    code = """
        import os

        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        from smepilot import _native

        with _native.Pool() as default, _native.Pool(4) as many:
            print(default.threads, many.threads, {worker["cpu"] for worker in many.placement()})
    """
    assert run(code) == "1 4 {None}"
