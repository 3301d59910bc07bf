# SPDX-License-Identifier: Apache-2.0
"""Fractions of the machine, worked out by hand; the probes themselves only for being possible."""

from __future__ import annotations

import pytest

from smepilot.bench.cases import Case
from smepilot.bench.roofline import Machine, Work, fraction, measure

COST = Work(layer_params=10**9, step_bytes=600_000_000, position_bytes=1000, quantised=True, params=0, size=0)
MACHINE = Machine(threads=2, read_bandwidth=30e9, int8_peak=1e12)


def test_a_prompt_is_measured_by_the_integer_peak() -> None:
    assert fraction(Case("pp", 512), 250.0, COST, MACHINE) == 0.5


def test_a_float_prompt_has_no_integer_peak() -> None:
    cost = Work(10**9, 2 * 10**9, 1000, quantised=False, params=0, size=0)
    assert fraction(Case("pp", 512), 250.0, cost, MACHINE) is None


def test_decode_is_measured_by_bandwidth_cache_included() -> None:
    assert fraction(Case("tg", 1), 25.0, COST, MACHINE) == pytest.approx(0.5, rel=1e-5)
    assert fraction(Case("tg", 1, depth=599_999), 25.0, COST, MACHINE) == 1.0


def test_sequences_share_the_weights_but_not_the_cache() -> None:
    case = Case("tg", 1, depth=74_999, sequences=8)
    assert fraction(case, 200.0, COST, MACHINE) == 1.0


def test_probes_are_possible() -> None:
    machine = measure(1)
    assert 1e8 < machine.read_bandwidth < 1e13
    assert 1e8 < machine.int8_peak < 1e15
