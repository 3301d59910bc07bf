# SPDX-License-Identifier: Apache-2.0
"""Figures of samples, checked against values worked out by hand."""

from __future__ import annotations

import pytest

from smepilot.bench.samples import Summary, pairwise, summarise
from smepilot.errors import InvalidParameterError


def test_summary() -> None:
    assert summarise([2.0, 4.0, 9.0]) == Summary(count=3, mean=5.0, sd=13.0**0.5, median=4.0, low=2.0, high=9.0)


def test_one_sample_has_no_spread() -> None:
    assert summarise([7.0]) == Summary(count=1, mean=7.0, sd=0.0, median=7.0, low=7.0, high=7.0)


def test_ratios_are_of_neighbours_not_of_medians() -> None:
    ratio = pairwise([10.0, 2.0, 30.0], [5.0, 1.0, 10.0])
    assert (ratio.median, ratio.low, ratio.high) == (2.0, 2.0, 3.0)


@pytest.mark.parametrize(
    ("ours", "theirs", "reason"),
    [([], [], "no samples"), ([1.0], [1.0, 2.0], "cannot be paired"), ([1.0], [0.0], "no ratio")],
)
def test_what_has_no_figures(ours: list[float], theirs: list[float], reason: str) -> None:
    with pytest.raises(InvalidParameterError, match=reason):
        pairwise(ours, theirs)
