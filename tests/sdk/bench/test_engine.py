# SPDX-License-Identifier: Apache-2.0
"""The whole way on the tiny model: this engine alone, and in pairs with itself as the peer."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from smepilot.bench import versus
from smepilot.bench.cases import Case, grid
from smepilot.bench.memory import peak_memory
from smepilot.bench.neighbour import busy_neighbour
from smepilot.bench.subject import Subject
from smepilot.bench.suite import our_setting, prepare, run, sample
from smepilot.bench.versus import Versus, llama_settings
from smepilot.types import PromptClassChoice
from tests import fetch

OURSELVES = Path(versus.__file__).with_name("subject.py")


def test_rows_of_all_cases(tiny_llama3: Path) -> None:
    cases = grid([20], [4], [0, 70], [1, 3])
    seen: list[tuple[str, int]] = []
    rows = list(run(tiny_llama3, cases, threads=[1, 2], repeats=2, on_case=lambda c, t: seen.append((c.name, t))))
    assert seen == [(case.name, threads) for threads in (1, 2) for case in cases]
    assert [(row.test, row.setting["threads"]) for row in rows] == seen
    assert all(len(row.samples) == 2 and min(row.samples) > 0 for row in rows)
    assert all(row.extra["roofline"] is None for row in rows if row.test.startswith("pp"))  # float weights
    assert all(row.extra["roofline"] > 0 for row in rows if row.test.startswith("tg"))


def test_rows_say_which_class_ran(tiny_llama3: Path) -> None:
    """What ran, not what was asked for: a float model has one class, and answers are grouped whatever prompts are."""
    quantised = fetch.tiny_llama3_gguf("Q4_0")
    cases = [Case("pp", 40), Case("tg", 4)]
    asked: list[tuple[Path, PromptClassChoice]] = [
        (tiny_llama3, "auto"),
        (quantised, "grouped"),
        (quantised, "rowwise"),
    ]
    classes = {
        (model, prompts): [
            row.extra["class"] for row in run(model, cases, threads=[1], repeats=1, prompt_class=prompts)
        ]
        for model, prompts in asked
    }
    assert list(classes.values()) == [["float", "float"], ["grouped", "grouped"], ["rowwise", "grouped"]]


def test_settings_name_a_class_that_was_asked_for() -> None:
    assert our_setting(2) == {"threads": 2}
    assert our_setting(2, "rowwise") == {"threads": 2, "class": "rowwise"}


def test_every_sample_starts_at_the_same_depth(tiny_llama3: Path) -> None:
    engine = Subject()
    engine.open(model=str(tiny_llama3))
    prepare(engine, Case("tg", 5, depth=70, sequences=2), {"threads": 1})
    for _ in range(3):
        assert engine.measure()["tokens"] == 10
        assert [sequence.length for sequence in engine._sequences] == [75, 75]
    assert engine.measure(limit=0.0)["tokens"] == 0
    prepare(engine, Case("pp", 30, depth=70), {"threads": 1})
    assert sample(engine) > 0
    assert [sequence.length for sequence in engine._sequences] == [100]
    engine.close()


def test_pairs(tiny_llama3: Path) -> None:
    with Versus(tiny_llama3, cores=2, pairs=3, peer=OURSELVES) as engines:
        assert engines.about_peer["engine"] == "smepilot"
        duel = engines.duel(Case("tg", 8))
        busy = engines.busy_duel(Case("tg", 8), duel)
        memory = engines.memory()
    assert (duel.ours.engine, duel.theirs.engine) == ("smepilot", "llama.cpp")
    assert duel.ratio.count == 3
    assert duel.ours.extra["class"] == "float"
    assert duel.kept is None
    assert busy.quiet == duel.ours
    assert busy.ours.setting == duel.ours.setting
    assert busy.kept is not None
    assert busy.kept > 0
    assert memory.ours.unit == "MiB"
    assert 10 < memory.ours.samples[0] < 1000


def test_llama_settings_follow_the_case() -> None:
    assert [setting["batch"] for setting in llama_settings(Case("pp", 2048), 2)] == [512, 2048, 512, 2048]
    assert {setting["unified"] for setting in llama_settings(Case("tg", 8), 2)} == {False}
    assert {setting["unified"] for setting in llama_settings(Case("tg", 8, sequences=8), 2)} == {False, True}


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="pinning is not offered here")
def test_a_busy_neighbour_takes_the_last_core_and_leaves() -> None:
    before = os.times()
    with busy_neighbour():
        time.sleep(0.5)
    after = os.times()
    assert after.children_user - before.children_user > 0.05


def test_peak_memory_is_of_this_process(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t 1 kB\n")
    assert peak_memory(status) == 2 << 20
    assert 1 << 20 < peak_memory() < 1 << 40
    assert 1 << 20 < peak_memory(tmp_path / "absent") < 1 << 40
