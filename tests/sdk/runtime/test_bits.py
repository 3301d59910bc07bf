# SPDX-License-Identifier: Apache-2.0
"""One arithmetic: the same bits from every tier, thread count, chunking of the prompt, and company in the batch.

Everything is compared with the scalar reference on one thread with the whole prompt in one step, at all positions and
as bytes, in both precision classes of prompts. A run on a tier must have executed that tier's kernels, or it would
prove nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from smepilot import _native
from smepilot.runtime.batch import Chunk
from smepilot.runtime.handle import Handle
from smepilot.runtime.runner import Runner
from smepilot.runtime.sequence import Role
from tests import fetch
from tests.rowwise import open_rowwise
from tests.sdk.runtime import golden

Logits = NDArray[np.float32]
TIERS = tuple(tier["name"] for tier in _native.tiers())
WHOLE_TIERS = {"scalar", "avx2", "avx512", "neon"}  # they have a kernel for everything
THREADS = (1, 2, 3, 5)
WHOLE = 1024
CHUNKS = (1, 7, 64, 512, WHOLE)
LONG = 600
STEPWISE = 150  # tokens of the runs that take one at a time: more than two pages

formats = pytest.mark.parametrize("dtype", golden.FORMATS)
cases = pytest.mark.parametrize(
    ("dtype", "prompt_class"),
    [(dtype, "grouped") for dtype in golden.FORMATS] + [(dtype, "rowwise") for dtype in golden.QUANTISED],
)
kv_types = pytest.mark.parametrize("kv", golden.KV_TYPES)


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    """A tier that this CPU has; that it was not built would be a fault of the build."""
    (facts,) = (t for t in _native.tiers() if t["name"] == request.param)
    if not facts["supported"]:
        pytest.skip(f"this CPU has no {request.param}")
    assert facts["built"]
    return str(request.param)


@contextmanager
def opened(path: Path, tier: str, prompt_class: str = "grouped", **options: Any) -> Iterator[Runner]:
    """A runner restricted to `tier`; on leaving, that tier's kernels must have run and no better ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SMEPILOT_ISA", tier)
        if prompt_class == "rowwise":
            runner = open_rowwise(path, **options)
        else:
            runner = Runner.open(path, prompt_class="grouped", **options)
    try:
        yield runner
        ran = runner.counts()
    finally:
        runner.close()
    below = [t["name"] for t in _native.tiers()[: TIERS.index(tier) + 1] if t["supported"]]
    chosen = {kernel["name"]: kernel["tier"] for kernel in _native.kernels(below) if kernel["chosen"]}
    assert set(ran) <= set(chosen)
    # A tier above `neon` has the products that it makes faster; which of them a matrix unit gets depends on the hour.
    if tier in WHOLE_TIERS:
        assert {chosen[name] for name in ran if name.startswith("sp_gemm_")} == {tier}
    assert any(name.startswith("sp_gemm_f32_q8r_q8r_") for name in ran) == (prompt_class == "rowwise")


def run(path: Path, tier: str, ids: list[int], prompt_class: str = "grouped", **options: Any) -> Logits:
    """Logits of all of `ids`, alone."""
    with opened(path, tier, prompt_class, **options) as runner:
        return runner.forward([(runner.sequence(), ids)], "all")


def random_ids(count: int, vocab: int = 279, seed: int = 0) -> list[int]:
    return np.random.default_rng(seed).integers(0, vocab, count).tolist()


@cache
def reference(dtype: str, kv: str, prompt_class: str = "grouped") -> Logits:
    """The scalar reference's logits of LONG tokens, in one step on one thread."""
    path = fetch.tiny_llama3_gguf(dtype)
    logits = run(path, "scalar", random_ids(LONG), prompt_class, kv_dtype=kv, threads=1, max_batch=WHOLE)
    assert np.isfinite(logits).all()
    return logits


def assert_same(got: Logits, want: Logits) -> None:
    assert got.shape == want.shape
    assert got.tobytes() == want.tobytes()


@cases
@kv_types
def test_tiers_threads_and_chunks(dtype: str, prompt_class: str, kv: str, tier: str) -> None:
    """The scalar reference, thirty times slower, is given 200 tokens."""
    want, path = reference(dtype, kv, prompt_class), fetch.tiny_llama3_gguf(dtype)
    for threads in THREADS:
        for chunk in CHUNKS:
            count = STEPWISE if chunk == 1 else 200 if tier == "scalar" else LONG
            got = run(path, tier, random_ids(count), prompt_class, kv_dtype=kv, threads=threads, max_batch=chunk)
            assert got.tobytes() == want[:count].tobytes(), f"{threads} threads, chunks of {chunk}"


@cases
@kv_types
@pytest.mark.parametrize("threads", [1, 3])
def test_company_in_the_batch(dtype: str, prompt_class: str, kv: str, tier: str, threads: int) -> None:
    """A sequence in pieces of odd sizes, while others in the same steps begin, prefill, decode and end."""
    want, ids = reference(dtype, kv, prompt_class), random_ids(LONG)
    pieces = [3, 1, 60, 1, 1, 17, 64, 1, 30]  # crosses pages in the middle and at their ends
    path = fetch.tiny_llama3_gguf(dtype)
    with opened(path, tier, prompt_class, kv_dtype=kv, threads=threads, max_batch=256) as runner:
        mine, decoding, late = runner.sequence(), runner.sequence(), runner.sequence()
        runner.forward([(decoding, random_ids(130, seed=1))], "none")
        got = []
        for step, n in enumerate(pieces):
            parts = [(decoding, random_ids(1, seed=step), Role.GENERATED)]
            if step % 2:
                parts.insert(0, (late, random_ids(20 + step, seed=step), Role.PROMPT))
            at = len(parts)
            parts.append((mine, ids[mine.length : mine.length + n], Role.PROMPT))
            parts.append((runner.sequence(), random_ids(5, seed=step), Role.PROMPT))
            rows = runner.step([handle.chunk(part, "all", role) for handle, part, role in parts])
            before = sum(len(part) for _, part, _ in parts[:at])
            got.append(rows[before : before + n].copy())
            for handle, part, _ in parts:
                handle.length += len(part)
    assert_same(np.concatenate(got), want[: sum(pieces)])


@pytest.mark.parametrize("dtype", golden.QUANTISED)
@pytest.mark.parametrize("threads", [1, 3])
def test_an_answer_after_a_rowwise_prompt(dtype: str, tier: str, threads: int) -> None:
    """Its tokens are grouped whatever stands beside them, and whether they come one by one or are computed again.

    Computed again, a conversation is one step of several stretches: prompt, answer, prompt, answer.
    """
    path, turns = fetch.tiny_llama3_gguf(dtype), (33, 12, 20, 7)
    ids, roles = random_ids(sum(turns)), (Role.PROMPT, Role.GENERATED) * 2
    with opened(path, tier, "rowwise", threads=threads) as runner:
        handle, got = runner.sequence(), []
        for count, role in zip(turns, roles, strict=True):
            part = ids[handle.length : handle.length + count]
            if role == Role.PROMPT:
                got.append(runner.forward([(handle, part)], "all"))
            else:
                got += [runner.forward([(handle, [token])], "all", role=role) for token in part]
        again, chunks, page = runner.sequence(), [], runner.sequence().chunk(ids, "all").pages
        for count, role in zip(turns, roles, strict=True):
            start = again.length
            chunks.append(Chunk(page, start, np.array(ids[start : start + count], np.int32), "all", role))
            again.length += count
        assert_same(runner.step(chunks), np.concatenate(got))
        assert_same(runner.step(chunks[:1] + chunks[1:2]), np.concatenate(got)[:45])
        grouped = run(path, tier, ids[:33])
        assert np.concatenate(got)[:33].tobytes() != grouped.tobytes()


def test_rows_that_are_wanted(tier: str) -> None:
    """Asking for some rows gives the bits that asking for all gives, in the order of the chunks."""
    path, first, second = fetch.tiny_llama3_gguf("Q4_0"), random_ids(40), random_ids(21, seed=1)
    with opened(path, tier, threads=2) as runner:

        def chunk(ids: list[int], want: Any) -> Chunk:
            return runner.sequence().chunk(ids, want)

        whole = runner.step([chunk(first, "all"), chunk(second, "all")]).copy()
        assert_same(runner.step([chunk(first, "last"), chunk(second, "all")]), whole[39:])
        assert_same(runner.step([chunk(first, "all"), chunk(second, "none")]), whole[:40])
        assert_same(runner.step([chunk(first, "last"), chunk(second, "last")]), whole[[39, 60]])
        assert runner.step([chunk(first, "none")]).shape == (0, 279)


def greedy(runner: Runner, handle: Handle, row: Logits, count: int) -> list[int]:
    """Continues greedily from the logits of the last token."""
    chosen = []
    for _ in range(count):
        chosen.append(int(row.argmax()))
        (row,) = runner.forward([(handle, chosen[-1:])])
    return chosen


@formats
def test_decoding_equals_prefilling(dtype: str, tier: str) -> None:
    """A greedy answer's logits, token by token, are those of the whole text in one go; and truncation leaves no trace.

    The second answer runs over pages that still hold the first one's keys and values behind its end.
    """
    ids = random_ids(100)
    with opened(fetch.tiny_llama3_gguf(dtype), tier, threads=2) as runner:
        handle = runner.sequence()
        (row,) = runner.forward([(handle, ids)])
        answer = greedy(runner, handle, row, 40)
        together = runner.forward([(runner.sequence(), ids + answer)], "all")
        assert together[99:139].argmax(axis=1).tolist() == answer

        handle.truncate(90)
        other = random_ids(45, seed=2)
        again = np.concatenate([runner.forward([(handle, [token])]) for token in other])
        fresh = runner.forward([(runner.sequence(), ids[:90] + other)], "all")
        assert_same(again, fresh[90:])


def test_recycled_pages_leave_no_trace(tier: str) -> None:
    """A page that another sequence has written and given back is as good as new."""
    path, ids = fetch.tiny_llama3_gguf("F16"), random_ids(200)
    with opened(path, tier, pages=4, ctx=256) as runner:
        first = runner.sequence()
        want = runner.forward([(first, ids)], "all")
        first.free()
        dirt = runner.sequence()
        runner.forward([(dirt, random_ids(256, seed=3))], "none")
        dirt.free()
        assert_same(runner.forward([(runner.sequence(), ids)], "all"), want)


@cases
def test_golden_hashes(dtype: str, prompt_class: str, tier: str) -> None:
    """The bits that every machine and every later architecture must give; see golden.py."""
    stored = json.loads((golden.DATA / "golden.json").read_text())[dtype]
    path = fetch.tiny_llama3_gguf(dtype)
    assert golden.model_hash(path) == stored["tensors"], "the test model itself has changed"
    if prompt_class == "rowwise":
        stored = stored["rowwise"]
    for kv in golden.KV_TYPES:
        with opened(path, tier, prompt_class, kv_dtype=kv, threads=2) as runner:
            assert golden.logits_hash(runner) == stored[kv]


# ---- a real model


@pytest.fixture(scope="session")
def packed_smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for SmolLM2's packed weights, so that it is packed once."""
    return tmp_path_factory.mktemp("smollm2")


@pytest.fixture(scope="session")
def smollm2_short(smollm2: Path, packed_smollm2: Path) -> Logits:
    """The scalar reference's logits of 64 tokens."""
    return run(smollm2, "scalar", random_ids(64, 49152), threads=2, max_batch=64, ctx=1024, cache_dir=packed_smollm2)


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS[1:], indirect=True)
def test_smollm2_short(tier: str, smollm2: Path, packed_smollm2: Path, smollm2_short: Logits) -> None:
    assert np.isfinite(smollm2_short).all()
    for threads, chunk in ((1, 64), (2, 7), (3, 64), (5, 64), (2, 1)):
        got = run(
            smollm2,
            tier,
            random_ids(64, 49152),
            threads=threads,
            max_batch=chunk,
            ctx=1024,
            cache_dir=packed_smollm2,
        )
        assert got.tobytes() == smollm2_short.tobytes(), f"{threads} threads, chunks of {chunk}"


@pytest.fixture(scope="session")
def smollm2_long(smollm2: Path, packed_smollm2: Path, smollm2_short: Logits) -> Logits:
    """The best tier's logits of 600 tokens, whole; the first 64 rows are the scalar reference's."""
    best = [t["name"] for t in _native.tiers() if t["supported"]][-1]
    logits = run(smollm2, best, random_ids(LONG, 49152), max_batch=LONG, ctx=1024, cache_dir=packed_smollm2)
    assert_same(logits[:64], smollm2_short)
    return logits


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS[1:], indirect=True)
def test_smollm2_long(tier: str, smollm2: Path, packed_smollm2: Path, smollm2_long: Logits) -> None:
    """Without the scalar reference, which would take minutes: the fixture has compared its 64 rows."""
    for threads, chunk in ((1, LONG), (2, 7), (2, 64), (2, 512), (3, 200), (5, LONG), (2, 1)):
        ids = random_ids(STEPWISE if chunk == 1 else LONG, 49152)
        got = run(smollm2, tier, ids, threads=threads, max_batch=chunk, ctx=1024, cache_dir=packed_smollm2)
        assert got.tobytes() == smollm2_long[: len(ids)].tobytes(), f"{threads} threads, chunks of {chunk}"
