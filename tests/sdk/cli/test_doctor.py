# SPDX-License-Identifier: Apache-2.0
"""`smepilot doctor` on machines with a matrix unit: what it says of units, of trust, and why a tier is not used."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from smepilot import _native
from smepilot.cli import main
from smepilot.runtime import trust
from tests.sdk.runtime.machines import machine, verdict

ARM = ("neon", "neon_dotprod", "neon_i8mm", "sme", "sme2")
Doctor = Callable[..., str]


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Doctor:
    """Runs the command on a machine with SME and SME2, with these facts and verdicts; returns what it prints."""

    def run(*arguments: str, verdicts: Sequence[trust.Verdict] = (), **facts: Any) -> str:
        machine(monkeypatch, built=ARM, supported=ARM, verdicts=verdicts)
        usual = {"sme_units": 0, "sme_private": False, "sme_workers": 1, "svl": 32}
        info: dict[str, Any] = {**_native.cpu_info(), **usual, **facts}
        info["features"] = {**info["features"], "sme": True, "sme2": True}
        monkeypatch.setattr(_native, "cpu_info", lambda: info)
        monkeypatch.setattr(_native, "kernels", lambda use: [])
        capsys.readouterr()
        assert main(["doctor", *arguments]) == 0
        monkeypatch.undo()
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({}, "shared by cores, number unknown: taken as one, vectors of 32 bytes"),
        ({"sme_private": True, "sme_workers": 0}, "one in each core, vectors of 32 bytes"),
        ({"sme_units": 3, "sme_workers": 2, "svl": 64}, "3 shared by cores, 2 of them by the strongest, vectors of 64"),
    ],
)
def test_units(facts: dict[str, Any], text: str, doctor: Doctor) -> None:
    assert text in doctor(**facts)


def test_trap10_unknown_units_get_one_worker(doctor: Doctor) -> None:
    workers = json.loads(doctor("--json"))["workers"]
    assert [worker["kind"] for worker in workers].count("sme") == 1
    workers = json.loads(doctor("--json", sme_private=True, sme_workers=0))["workers"]
    assert {worker["kind"] for worker in workers} == {"core"}


def test_trust_is_shown(doctor: Doctor) -> None:
    text = doctor()
    assert "self-test sme " in text
    assert "right: 300 products through 40 interruptions (10 ms, just now)" in text


def test_trap3_distrust_is_shown_with_its_reason(doctor: Doctor) -> None:
    wrong = [verdict("sme2", "wrong bits", kernel="sp_gemm_q_sme2", cpu=5)]
    text = doctor(verdicts=wrong)
    assert "self-test failed: wrong bits in sp_gemm_q_sme2 on CPU 5 (10 ms" in text
    assert "sme2: self-test failed" in next(line for line in text.splitlines() if line.startswith("sme  "))
    report = json.loads(doctor("--json", verdicts=wrong))
    assert report["used"] == ["scalar", "neon", "neon_dotprod", "neon_i8mm"]
    assert report["selftest"][1]["trust"] == "wrong bits"
    reasons = {tier["name"]: tier["reason"] for tier in report["tiers"]}
    assert reasons["sme2"] == "self-test failed: wrong bits in sp_gemm_q_sme2 on CPU 5"
    assert reasons["neon"] is None
    assert {worker["kind"] for worker in report["workers"]} == {"core"}


def test_retest_asks_again(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked = machine(monkeypatch, built=ARM, supported=ARM)
    monkeypatch.setattr(_native, "kernels", lambda use: [])
    kept = {tier: verdict(tier, "right", when=time.time() - 3 * 86400) for tier in trust.MATRIX}
    monkeypatch.setattr(trust, "_read", lambda key: kept)
    assert main(["doctor"]) == 0
    assert asked == []
    assert "3 days ago" in capsys.readouterr().out
    assert main(["doctor", "--retest"]) == 0
    assert asked == ["sme", "sme2"]
