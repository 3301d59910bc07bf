# SPDX-License-Identifier: Apache-2.0
"""Kept runs: their folder, what they hold, and how two of them compare."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from smepilot.bench.compare import change_table, compare, read_run
from smepilot.bench.record import Conditions, device, environment, write_run
from smepilot.bench.suite import Row
from smepilot.errors import InvalidParameterError, NotFoundError

ROW = Row("smepilot", "m.gguf", "tg64", {"threads": 2}, (10.0, 11.0, 12.0))


def keep(runs: Path, row: Row = ROW) -> Path:
    env = environment() | {"conditions": Conditions().finish()}
    return write_run(runs, "Two Words!", [row], env=env, readme="| a table |\n")


def test_a_run_is_named_by_day_device_and_topic(tmp_path: Path) -> None:
    first, second = keep(tmp_path), keep(tmp_path)
    day = json.loads((first / "env.json").read_text())["date"][:10]
    assert first.name == f"{day}-{device()}-two-words"
    assert second.name == first.name + "-2"


def test_a_run_holds_samples_environment_and_table(tmp_path: Path) -> None:
    folder = keep(tmp_path)
    assert read_run(folder)[0].samples == ROW.samples
    env = json.loads((folder / "env.json").read_text())
    assert {"cpu", "usable_cores", "governor", "smepilot", "commit", "command", "conditions"} <= env.keys()
    readme = (folder / "README.md").read_text()
    assert readme.startswith("# Two Words!\n")
    assert "| a table |" in readme
    assert env["cpu"] in readme


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="the system does not say")
def test_conditions_tell_our_own_work_from_that_of_others() -> None:
    watch = Conditions()
    subprocess.run([sys.executable, "-c", "x = 0\nfor i in range(3_000_000): x += i"], check=True)
    seen = watch.finish()
    assert seen["seconds"] > 0
    assert 0 <= seen["other_load"] <= 1
    assert 0 <= seen["steal"] <= 1


@pytest.mark.parametrize(
    ("samples", "unit", "verdict"),
    [
        ((13.0, 14.0, 15.0), "t/s", "better"),
        ((7.0, 8.0, 9.0), "t/s", "worse"),
        ((12.0, 13.0, 14.0), "t/s", "no difference"),
        ((13.0, 14.0, 15.0), "s", "worse"),
        ((7.0, 8.0, 9.0), "MiB", "better"),
    ],
)
def test_verdicts(samples: tuple[float, ...], unit: str, verdict: str) -> None:
    before = Row(ROW.engine, ROW.model, ROW.test, ROW.setting, ROW.samples, unit)
    after = Row(ROW.engine, ROW.model, ROW.test, ROW.setting, samples, unit)
    (change,) = compare([before], [after])
    assert change.verdict == verdict
    assert verdict in change_table([change])


def test_tests_are_matched_by_setting_unless_there_is_only_one() -> None:
    one, two = (Row("smepilot", "m.gguf", "tg64", {"threads": n}, (float(n),)) for n in (1, 2))
    assert [change.after for change in compare([two, one], [one, two])] == [two, one]
    assert [change.after for change in compare([two], [one])] == [one]
    assert [change.before for change in compare([one, two], [two, one])] == [one, two]


def test_runs_without_a_common_test(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="no test in common"):
        compare([ROW], [Row("smepilot", "other.gguf", "tg64", {}, (1.0,))])
    with pytest.raises(NotFoundError, match="not a kept run"):
        read_run(tmp_path)


def test_the_environment_names_no_private_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/home/somebody/bin/smepilot", "bench", "/home/somebody/m.gguf", "-p", "512"])
    assert environment()["command"] == ["smepilot", "bench", "m.gguf", "-p", "512"]


def test_the_commit_is_that_of_the_package_not_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = environment()["commit"]
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.chdir(tmp_path)
    assert environment()["commit"] == before
