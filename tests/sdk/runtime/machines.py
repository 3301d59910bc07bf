# SPDX-License-Identifier: Apache-2.0
"""Machines that are not here, for tests of what is decided on them: their tiers, and what their self-test says."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from smepilot import _native
from smepilot.runtime import trust

NAMES = ("scalar", "avx2", "avx512", "neon", "neon_dotprod", "neon_i8mm", "sme", "sme2")


def verdict(tier: str, outcome: str, **facts: Any) -> trust.Verdict:
    """A verdict of the self-test."""
    usual: dict[str, Any] = {"kernel": None, "signal": None, "cpu": None, "svl": 64, "calls": 300, "interruptions": 40}
    return trust.Verdict(tier=tier, trust=outcome, **({"seconds": 0.01, "when": time.time()} | usual | facts))


def selftest(results: Sequence[trust.Verdict], asked: list[str]) -> Any:
    """What answers in the self-test's place: the result of the tier asked for, "right" where there is none."""

    def answer(tier: str) -> dict[str, Any]:
        asked.append(tier)
        found = next((each for each in results if each.tier == tier), verdict(tier, "right"))
        fields = ("trust", "kernel", "signal", "cpu", "svl", "calls", "interruptions", "seconds")
        return {name: getattr(found, name) for name in fields}

    return answer


def machine(
    patch: pytest.MonkeyPatch,
    *,
    built: Sequence[str],
    supported: Sequence[str],
    verdicts: Sequence[trust.Verdict] = (),
) -> list[str]:
    """Makes this process believe in a machine with these tiers; returns the list of tiers that are put to the test."""
    asked: list[str] = []
    there = [
        {"name": name, "built": name == "scalar" or name in built, "supported": name == "scalar" or name in supported}
        for name in NAMES
    ]
    patch.setattr(_native, "tiers", lambda: there)
    patch.setattr(_native, "selftest", selftest(verdicts, asked))
    patch.setattr(trust, "_known", {})
    patch.setattr(trust, "_read", lambda key: {})
    patch.setattr(trust, "_write", lambda key, verdicts: None)
    return asked
