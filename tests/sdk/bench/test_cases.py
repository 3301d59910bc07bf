# SPDX-License-Identifier: Apache-2.0
"""Names and lists of benchmark cases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smepilot.bench.cases import Case, grid, parse_case, parse_counts
from smepilot.errors import InvalidParameterError

CASES = st.builds(
    Case,
    phase=st.sampled_from(["pp", "tg"]),
    tokens=st.integers(1, 10_000),
    depth=st.integers(0, 100_000),
    sequences=st.integers(1, 64),
)


@given(CASES)
def test_a_name_reads_back(case: Case) -> None:
    assert parse_case(case.name) == case


@pytest.mark.parametrize(
    ("case", "name"),
    [
        (Case("pp", 512), "pp512"),
        (Case("tg", 64, depth=2048), "tg64 @ d2048"),
        (Case("tg", 64, sequences=8), "tg64 x8"),
        (Case("tg", 64, depth=2048, sequences=8), "tg64 x8 @ d2048"),
    ],
)
def test_names(case: Case, name: str) -> None:
    assert case.name == name


@pytest.mark.parametrize("name", ["", "pp", "pp0", "tg-1", "pp512@d1", "tg64 x0", "xx5", "pp512 @ 2048"])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(InvalidParameterError, match="names no benchmark case"):
        parse_case(name)


def test_a_case_counts_positions_and_tokens() -> None:
    case = Case("tg", 64, depth=2048, sequences=8)
    assert (case.context, case.total) == (2112, 512)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("512", [512]),
        ("0,2048", [0, 2048]),
        ("1-4", [1, 2, 3, 4]),
        ("0-4096+1024", [0, 1024, 2048, 3072, 4096]),
        ("1-16*2,3", [1, 2, 4, 8, 16, 3]),
        (" 1 , 2 ", [1, 2]),
    ],
)
def test_lists(text: str, counts: list[int]) -> None:
    assert parse_counts(text, "-p") == counts


@pytest.mark.parametrize("text", ["", "x", "1,", "-1", "4-1", "1-8*1", "0-8*2", "1-8+0", "1.5", "0-1000000"])
def test_what_is_no_list(text: str) -> None:
    with pytest.raises(InvalidParameterError, match=r"^-p "):
        parse_counts(text, "-p")


def test_the_grid_is_ordered_by_depth_and_holds_no_case_twice() -> None:
    cases = grid(prompts=[512], generations=[64, 64], depths=[0, 2048], sequences=[1, 8])
    names = ["pp512", "tg64", "tg64 x8", "pp512 @ d2048", "tg64 @ d2048", "tg64 x8 @ d2048"]
    assert [case.name for case in cases] == names


def test_zero_leaves_a_phase_out() -> None:
    assert grid(prompts=[0], generations=[64]) == [Case("tg", 64)]
    assert grid(prompts=[512], generations=[0]) == [Case("pp", 512)]


@pytest.mark.parametrize(("prompts", "together"), [([0], [1]), ([0], [0]), ([512], [0])])
def test_nothing_to_measure(prompts: list[int], together: list[int]) -> None:
    with pytest.raises(InvalidParameterError, match="nothing to measure"):
        grid(prompts=prompts, generations=[0], sequences=together)
