# SPDX-License-Identifier: Apache-2.0
"""When a promise counts as held."""

from __future__ import annotations

import pytest

from smepilot.bench import Duel, Row, parse_case
from tests.bench.peers import MODELS
from tests.bench.table import PROMISES, Outcome, Promise, render


def duel(ours: float, theirs: float, unit: str = "t/s", roofline: float | None = None, quiet: float = 0.0) -> Duel:
    rows = [Row(name, "m", "tg64", {}, (value,), unit) for name, value in (("smepilot", ours), ("llama.cpp", theirs))]
    rows[0].extra["roofline"] = roofline
    return Duel(rows[0], rows[1], Row("smepilot", "m", "tg64", {}, (quiet,)) if quiet else None)


@pytest.mark.parametrize(
    ("promise", "measured", "held"),
    [
        (Promise("m", "tg64", 1.5), duel(15, 10), True),
        (Promise("m", "tg64", 1.5), duel(14, 10), False),
        (Promise("m", "first token", 0.7), duel(0.7, 1.0, "s"), True),
        (Promise("m", "first token", 0.7), duel(0.8, 1.0, "s"), False),
        (Promise("m", "tg64", 1.5, roofline=0.92), duel(14, 10, roofline=0.93), True),
        (Promise("m", "tg64", 1.5, roofline=0.92), duel(14, 10, roofline=0.91), False),
        (Promise("m", "tg64", 1.5), duel(14, 10, roofline=0.99), False),
    ],
)
def test_held(promise: Promise, measured: Duel, held: bool) -> None:
    assert Outcome(promise, measured).held is held


def test_a_busy_neighbour_must_leave_enough() -> None:
    promise = Promise("m", "tg64", 1.0)
    assert Outcome(promise, duel(10, 5), duel(4, 1, quiet=10)).steady
    assert not Outcome(promise, duel(10, 5), duel(3, 1, quiet=10)).steady
    *_, line = render([Outcome(promise, duel(10, 5), duel(3, 1, quiet=10))]).splitlines()
    assert "no" in [cell.strip() for cell in line.split("|")]


def test_every_promise_can_be_measured() -> None:
    assert {promise.model for promise in PROMISES} == MODELS.keys()
    for promise in PROMISES:
        if promise.test not in ("first token", "peak memory"):
            assert parse_case(promise.test).name == promise.test
