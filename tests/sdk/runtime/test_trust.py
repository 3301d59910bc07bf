# SPDX-License-Identifier: Apache-2.0
"""The self-test's answer is kept, bad ones too, until build or machine change; what is not conclusive is not kept."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from smepilot import _native
from smepilot.runtime import trust
from tests.sdk.runtime.machines import selftest, verdict


class Machine:
    """A machine whose matrix unit behaves as told, and a home of its own; `restart` is a new process on it."""

    def __init__(self, patch: pytest.MonkeyPatch, home: Path) -> None:
        self.patch = patch
        self.asked: list[str] = []
        self.home = home
        patch.setenv("SMEPILOT_HOME", str(home))
        self.behave([])

    def behave(self, results: Sequence[trust.Verdict]) -> None:
        """Sets what its self-test finds from now on."""
        self.patch.setattr(_native, "selftest", selftest(results, self.asked))
        self.restart()

    def restart(self) -> None:
        """Forgets what a process knows."""
        self.patch.setattr(trust, "_known", {})

    def files(self) -> list[Path]:
        """What is kept."""
        return sorted((self.home / "cache" / "selftest").glob("*"))


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    """Return a machine whose matrix unit is right."""
    return Machine(monkeypatch, tmp_path)


def outcomes(tiers: Sequence[str] = trust.MATRIX, *, retest: bool = False) -> list[str]:
    return [each.trust for each in trust.verdicts(tiers, retest=retest)]


def test_nothing_to_test_touches_nothing(there: Machine) -> None:
    assert trust.verdicts([]) == ()
    assert (there.asked, there.files()) == ([], [])


def test_an_answer_is_kept(there: Machine) -> None:
    assert outcomes() == ["right", "right"]
    assert outcomes() == ["right", "right"]
    assert there.asked == ["sme", "sme2"]
    there.restart()
    first = trust.verdicts(trust.MATRIX)
    assert there.asked == ["sme", "sme2"]
    assert first[0].when > 0
    assert len(there.files()) == 1


@pytest.mark.parametrize("outcome", ["wrong bits", "trapped"])
def test_trap3_a_bad_answer_is_kept_too(outcome: str, there: Machine) -> None:
    there.behave([verdict("sme", outcome)])
    assert outcomes() == [outcome, "right"]
    there.behave([])  # it would be right now
    assert outcomes() == [outcome, "right"]
    assert outcomes(retest=True) == ["right", "right"]
    there.restart()
    assert outcomes() == ["right", "right"]


@pytest.mark.parametrize("outcome", ["timed out", "untested"])
def test_what_is_not_conclusive_holds_for_the_process(outcome: str, there: Machine) -> None:
    there.behave([verdict("sme", outcome)])
    assert outcomes() == [outcome, "right"]
    assert outcomes() == [outcome, "right"]
    there.behave([])
    assert outcomes() == ["right", "right"]
    assert there.asked == ["sme", "sme2", "sme"]


def test_a_tier_that_was_forbidden_before_is_tested_alone(there: Machine) -> None:
    assert outcomes(["sme"]) == ["right"]
    there.restart()
    assert outcomes() == ["right", "right"]
    assert there.asked == ["sme", "sme2"]


@pytest.mark.parametrize(
    ("name", "value"), [("brand", "Another"), ("midr", 0x410FD490), ("svl", 32), ("features", {"sme": True})]
)
def test_another_processor_is_tested_anew(name: str, value: object, there: Machine) -> None:
    outcomes()
    info = {**_native.cpu_info(), name: value}
    there.patch.setattr(_native, "cpu_info", lambda: info)
    there.restart()
    outcomes()
    assert there.asked == ["sme", "sme2", "sme", "sme2"]
    assert len(there.files()) == 2


def test_another_system_or_build_is_tested_anew(there: Machine) -> None:
    outcomes()
    for place, change in ((trust.platform, "version"), (trust.platform, "release"), (trust, "_build")):
        there.patch.setattr(place, change, lambda: "another")
        there.restart()
        outcomes()
    assert there.asked == ["sme", "sme2"] * 4


def test_cpus_that_were_not_tested_are(there: Machine) -> None:
    """An app that started in the background, on little cores, and comes to the front."""
    info = {**_native.cpu_info(), "allowed": [0, 1]}
    there.patch.setattr(_native, "cpu_info", lambda: info)
    outcomes()
    info["allowed"] = [1]
    there.restart()
    outcomes()
    assert there.asked == ["sme", "sme2"]
    info["allowed"] = [0, 7]
    there.restart()
    outcomes()
    assert there.asked == ["sme", "sme2"] * 2


@pytest.mark.parametrize("content", ["", "{", "[]", '{"key": {"cpus": 1}}', '{"key": {}, "verdicts": []}', "\x00\xff"])
def test_damaged_files_are_replaced(content: str, there: Machine) -> None:
    outcomes()
    (file,) = there.files()
    file.write_text(content)
    there.restart()
    assert outcomes() == ["right", "right"]
    assert len(json.loads(file.read_text())["verdicts"]) == 2
    assert there.asked == ["sme", "sme2"] * 2


def test_a_verdict_of_another_version_is_made_anew(there: Machine) -> None:
    outcomes()
    (file,) = there.files()
    document = json.loads(file.read_text())
    document["verdicts"][0]["mood"] = "good"
    file.write_text(json.dumps(document))
    there.restart()
    assert outcomes() == ["right", "right"]
    assert there.asked == ["sme", "sme2"] * 2


def test_a_home_that_cannot_be_written_only_costs_the_test(there: Machine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    there.patch.setenv("SMEPILOT_HOME", str(tmp_path / "file"))
    assert outcomes() == ["right", "right"]
    there.restart()
    assert outcomes() == ["right", "right"]
    assert there.asked == ["sme", "sme2"] * 2


def test_an_extension_without_a_file_keeps_nothing(there: Machine) -> None:
    there.patch.setattr(trust, "_build", lambda: "")
    outcomes()
    assert there.files() == []


def test_refusal_is_logged_once(there: Machine, caplog: pytest.LogCaptureFixture) -> None:
    there.behave([verdict("sme", "wrong bits", kernel="sp_k", cpu=2)])
    with caplog.at_level(logging.WARNING, "smepilot"):
        outcomes()
        outcomes()
    assert [record.getMessage() for record in caplog.records] == [
        "sme is not used: self-test failed: wrong bits in sp_k on CPU 2",
        "sme2 is not used: sme: self-test failed: wrong bits in sp_k on CPU 2",
    ]


def test_signals_have_names() -> None:
    assert "trapped (SIGILL)" in str(verdict("sme", "trapped", signal=4).reason)
    assert "trapped (signal 999)" in str(verdict("sme", "trapped", signal=999).reason)
    assert verdict("sme", "right").reason is None


def test_the_native_test_itself() -> None:
    """The tiers of this very machine, through the extension: all are right."""
    there = [each["name"] for each in _native.tiers() if each["built"] and each["supported"]]
    for tier in there:
        result = _native.selftest(tier, limit_ms=60000)
        assert result["trust"] == "right", tier
        assert result["calls"] > 0
        assert 0 < result["seconds"] < 60
    with pytest.raises(ValueError, match="tier 'mmx' cannot run here"):
        _native.selftest("mmx")
