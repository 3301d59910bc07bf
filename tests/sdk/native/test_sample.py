# SPDX-License-Identifier: Apache-2.0
"""The sampler's rules, as its header states them, against a model of them in float64 and against statistics."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from smepilot import _native
from smepilot.errors import InvalidParameterError, NumericError

Row = NDArray[np.float32]

TIERS = [tier["name"] for tier in _native.tiers() if tier["built"] and tier["supported"]]


def random_row(vocab: int, seed: int, spread: float = 3.0) -> Row:
    """Logits of a normal distribution."""
    return (np.random.default_rng(seed).standard_normal(vocab) * spread).astype(np.float32)


def ids(*tokens: int) -> NDArray[np.int32]:
    """Token ids as the sampler takes them."""
    return np.array(tokens, np.int32)


def uniform(seed: int, draw: int) -> float:
    """The number that belongs to (seed, draw)."""
    low, high, *_ = _native.philox(seed, draw)
    return ((high << 32 | low) >> 11) * 2.0**-53


def kept(row: Row, temperature: float, top_k: int, top_p: float, min_p: float) -> tuple[Any, Any]:
    """Candidates in order and their weights, after truncation, in float64."""
    order = np.argsort(-row.astype(np.float64), kind="stable")[: top_k if 0 < top_k < len(row) else len(row)]
    weights = np.exp((row[order].astype(np.float64) - row.max()) / temperature)
    count = len(order)
    if top_p < 1:
        count = min(count, 1 + int(np.searchsorted(np.cumsum(weights), top_p * weights.sum())))
    if min_p > 0:
        count = min(count, max(1, int((weights >= min_p).sum())))
    return order[:count], weights[:count]


def expected(row: Row, u: float, **truncation: Any) -> int | None:
    """The token that the rules give; None where u falls so close to a border that float32 may decide otherwise."""
    order, weights = kept(row, **truncation)
    share = np.cumsum(weights) / weights.sum()
    if np.abs(share - u).min() < 1e-6:
        return None
    return int(order[np.searchsorted(share, u, side="right")])


@pytest.mark.parametrize("vocab", [1, 2, 63, 279, 1500, 49152])
@pytest.mark.parametrize(
    "truncation",
    [
        {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0},
        {"temperature": 0.7, "top_k": 40, "top_p": 0.95, "min_p": 0.05},
        {"temperature": 1.5, "top_k": 0, "top_p": 0.9, "min_p": 0.0},
        {"temperature": 8.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0},
        {"temperature": 8.0, "top_k": 1200, "top_p": 1.0, "min_p": 0.0},
        {"temperature": 3.0, "top_k": -1, "top_p": 1.0, "min_p": 0.2},
    ],
)
def test_draws_follow_the_rules(vocab: int, truncation: dict[str, Any]) -> None:
    compared = 0
    for draw in range(25):
        row = random_row(vocab, draw)
        want = expected(row, uniform(11, draw), **truncation)
        if want is not None:
            compared += 1
            assert _native.sample(row, seed=11, draw=draw, **truncation) == want
    assert compared >= 15


@pytest.mark.parametrize("top_p", [1.0, 0.9])
def test_frequencies_are_the_probabilities(top_p: float) -> None:
    row = random_row(40, 3, 1.5)
    order, weights = kept(row, 1.0, 0, top_p, 0.0)
    draws = 20_000
    counts = np.bincount([_native.sample(row, top_p=top_p, seed=9, draw=i) for i in range(draws)], minlength=40)
    assert counts.sum() == counts[order].sum()  # nothing outside the nucleus
    want = draws * weights / weights.sum()
    chi_square = float(((counts[order] - want) ** 2 / want).sum())
    freedom = len(order) - 1
    assert abs(chi_square - freedom) < 5 * math.sqrt(2 * freedom)


def test_same_seed_same_tokens_and_other_seeds_other_tokens() -> None:
    row = random_row(1000, 1)
    first = [_native.sample(row, seed=1, draw=i) for i in range(50)]
    assert first == [_native.sample(row, seed=1, draw=i) for i in range(50)]
    assert first != [_native.sample(row, seed=2, draw=i) for i in range(50)]
    assert _native.sample(row, seed=2**64 - 1, draw=2**64 - 1) in range(1000)


def test_tiers_and_threads_agree() -> None:
    rows = [random_row(5000, seed) for seed in range(40)]
    want = [_native.sample(row, temperature=3.0, seed=4, draw=i) for i, row in enumerate(rows)]
    for count in range(1, len(TIERS) + 1):
        assert want == [
            _native.sample(row, temperature=3.0, seed=4, draw=i, tiers=TIERS[:count]) for i, row in enumerate(rows)
        ]
    with ThreadPoolExecutor(4) as threads:
        jobs = [threads.submit(_native.sample, row, temperature=3.0, seed=4, draw=i) for i, row in enumerate(rows)]
    assert want == [job.result() for job in jobs]


def test_top_k_beyond_the_vocabulary_keeps_all() -> None:
    for draw in range(20):
        row = random_row(300, draw)
        want = _native.sample(row, top_k=0, seed=6, draw=draw)
        assert {_native.sample(row, top_k=k, seed=6, draw=draw) for k in (-1, 300, 301, 2**40)} == {want}


@pytest.mark.parametrize("temperature", [0.0, 1e-45, 1e-20, 1e-6, 1e-5])
def test_tiny_temperatures_take_the_largest(temperature: float) -> None:
    row = random_row(49152, 8, 30.0)
    for draw in range(10):
        assert _native.sample(row, temperature=temperature, seed=3, draw=draw) == int(row.argmax())


def test_infinite_temperature_is_uniform() -> None:
    row = random_row(10, 0)
    drawn = {_native.sample(row, temperature=math.inf, seed=0, draw=i) for i in range(300)}
    assert drawn == set(range(10))


def test_extreme_truncation_leaves_the_largest() -> None:
    row = random_row(500, 2)
    best = int(row.argmax())
    for draw in range(10):
        assert _native.sample(row, top_k=1, seed=1, draw=draw) == best
        assert _native.sample(row, top_p=1e-9, seed=1, draw=draw) == best
        assert _native.sample(row, top_p=0.0, seed=1, draw=draw) == best
        assert _native.sample(row, min_p=1.0, seed=1, draw=draw) == best


def test_ties_go_to_the_lower_id() -> None:
    row = np.zeros(100, np.float32)
    row[[20, 40, 60]] = 5.0
    assert _native.argmax(row) == 20
    assert _native.sample(row, top_k=1, seed=1) == 20
    assert {_native.sample(row, top_k=2, seed=1, draw=i) for i in range(60)} == {20, 40}
    assert {_native.sample(row, top_k=3, top_p=0.5, seed=1, draw=i) for i in range(60)} == {20, 40}
    row[0] = -0.0
    row[1:] = 0.0
    assert _native.argmax(row) == 0


def test_equal_logits_draw_from_all() -> None:
    row = np.full(3000, 2.0, np.float32)
    drawn = [_native.sample(row, seed=1, draw=i) for i in range(200)]
    assert drawn == [int(uniform(1, i) * 3000) for i in range(200)]


def test_bias_is_added_and_forbids() -> None:
    row = np.zeros(50, np.float32)
    bias: dict[str, Any] = {"bias_ids": ids(7, 9), "bias_values": np.array([3.0, 4.0], np.float32)}
    assert _native.sample(row, temperature=0.0, **bias) == 9
    forbidden: dict[str, Any] = {"bias_ids": ids(*range(49)), "bias_values": np.full(49, -np.inf, np.float32)}
    assert {_native.sample(row, seed=5, draw=i, **forbidden) for i in range(50)} == {49}
    assert not row.any()  # the caller's row is not touched


def test_forbidden_tokens_are_never_drawn() -> None:
    row = np.full(2000, -np.inf, np.float32)
    row[[3, 1999]] = 1.0
    ways: list[dict[str, Any]] = [{}, {"top_p": 0.999999}, {"top_k": 1500}, {"temperature": 100.0}, {"min_p": 1e-30}]
    for parameters in ways:
        drawn = {_native.sample(row, seed=5, draw=i, **parameters) for i in range(100)}
        assert drawn == {3, 1999}


def test_repetition_divides_positive_and_multiplies_negative_logits() -> None:
    row = np.array([4.0, 2.5, 1.0], np.float32)
    assert _native.sample(row, temperature=0.0, repetition_penalty=2.0, recent=ids(0, 0, 0)) == 1  # 2.0: applied once
    row = np.array([-1.0, -1.5, -4.0], np.float32)
    assert _native.sample(row, temperature=0.0, repetition_penalty=2.0, recent=ids(0)) == 1


def test_presence_counts_once_and_frequency_each_time() -> None:
    row = np.array([3.0, 2.0, 1.5], np.float32)
    penalise: dict[str, Any] = {"temperature": 0.0, "recent": ids(0, 0, 1)}
    assert _native.sample(row, presence_penalty=1.2, **penalise) == 0  # 1.8, 0.8, 1.5
    assert _native.sample(row, presence_penalty=1.6, **penalise) == 2  # 1.4, 0.4, 1.5
    assert _native.sample(row, frequency_penalty=0.6, **penalise) == 0  # 1.8, 1.4, 1.5
    assert _native.sample(row, frequency_penalty=0.8, **penalise) == 2  # 1.4, 1.2, 1.5
    assert _native.sample(row, presence_penalty=-1.0, temperature=0.0, recent=ids(2, 2)) == 0  # 3.0, 2.0, 2.5


def test_only_the_answer_pays_presence_and_frequency() -> None:
    row = np.array([3.0, 2.0], np.float32)
    common: dict[str, Any] = {"temperature": 0.0, "recent": ids(0, 1), "frequency_penalty": 2.0}
    assert _native.sample(row, answer=2, **common) == 0  # 1.0, 0.0
    assert _native.sample(row, answer=1, **common) == 0  # 3.0, 0.0
    assert _native.sample(row, answer=0, repetition_penalty=4.0, **(common | {"recent": ids(0)})) == 1  # 0.75, 2.0


@pytest.mark.parametrize("position", [0, 17, 4095, 4999])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_nan_is_reported(position: int, temperature: float) -> None:
    row = random_row(5000, 1)
    row[position] = np.nan
    with pytest.raises(NumericError, match="sampling from 5000 logits"):
        _native.sample(row, temperature=temperature)
    with pytest.raises(NumericError):
        _native.log_softmax_at(row, 3)


@pytest.mark.parametrize("value", [-np.inf, np.inf])
def test_without_a_finite_maximum_there_is_no_token(value: float) -> None:
    with pytest.raises(NumericError):
        _native.sample(np.full(10, value, np.float32))
    with pytest.raises(NumericError):
        _native.argmax(np.full(10, value, np.float32))


@pytest.mark.parametrize(
    ("named", "arguments"),
    [
        ("temperature is -1.0", {"temperature": -1.0}),
        ("temperature is nan", {"temperature": math.nan}),
        ("top_p is nan", {"top_p": math.nan}),
        ("min_p is nan", {"min_p": math.nan}),
        ("repetition_penalty is 0.0", {"repetition_penalty": 0.0}),
        ("presence_penalty is nan", {"presence_penalty": math.nan}),
        ("frequency_penalty is nan", {"frequency_penalty": math.nan}),
        ("seed is -1", {"seed": -1}),
        ("seed is 18446744073709551616", {"seed": 2**64}),
        ("draw is -1", {"draw": -1}),
        ("recent names token 10; the vocabulary has ids 0 to 9", {"recent": ids(10)}),
        ("recent names token -1", {"recent": ids(-1)}),
        ("answer is 2; expected 0 to len", {"recent": ids(1), "answer": 2}),
        ("bias_ids names token 10", {"bias_ids": ids(10), "bias_values": np.zeros(1, np.float32)}),
        ("bias_values. is 0; expected as many as bias_ids, 1", {"bias_ids": ids(1)}),
        ("'z80' is not available", {"tiers": ["z80"]}),
    ],
)
def test_bad_arguments_are_named(named: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match=named):
        _native.sample(np.zeros(10, np.float32), **arguments)


def test_log_softmax_is_exact_to_a_millionth() -> None:
    row = random_row(49152, 5)
    wide = row.astype(np.float64)
    want = wide - wide.max() - math.log(np.exp(wide - wide.max()).sum())
    for token in range(0, 49152, 1000):
        assert _native.log_softmax_at(row, token) == pytest.approx(want[token], abs=1e-6)
    with pytest.raises(InvalidParameterError, match="token is 49152"):
        _native.log_softmax_at(row, 49152)


def test_read_only_rows_will_do() -> None:
    row = random_row(100, 1)
    row.flags.writeable = False
    assert _native.argmax(row) == int(row.argmax())
