# SPDX-License-Identifier: Apache-2.0
"""How samples are summed up.

Times on a shared machine have a long tail to one side, so the median is the figure to quote and the mean with its
standard deviation says how quiet the machine was. Two engines are compared by the ratio of *neighbouring* samples:
a slow minute hits both members of a pair, and the median over the pairs forgets the rest.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from smepilot.errors import InvalidParameterError


@dataclass(frozen=True)
class Summary:
    """Mean, standard deviation (n - 1; 0 for one sample), median and range of samples, in the samples' unit."""

    count: int
    mean: float
    sd: float
    median: float
    low: float
    high: float


def summarise(values: Sequence[float]) -> Summary:
    """Sums up at least one sample."""
    if not values:
        raise InvalidParameterError("no samples to sum up; repeat at least once")
    return Summary(
        count=len(values),
        mean=statistics.fmean(values),
        sd=statistics.stdev(values) if len(values) > 1 else 0.0,
        median=statistics.median(values),
        low=min(values),
        high=max(values),
    )


def pairwise(ours: Sequence[float], theirs: Sequence[float]) -> Summary:
    """Sums up the ratios of neighbouring samples, ours over theirs.

    Raises:
        InvalidParameterError: The two do not pair up, or a sample of theirs is not positive.
    """
    if len(ours) != len(theirs):
        raise InvalidParameterError(f"{len(ours)} samples cannot be paired with {len(theirs)}")
    if any(value <= 0 for value in theirs):
        raise InvalidParameterError("a sample of 0 has no ratio")
    return summarise([a / b for a, b in zip(ours, theirs, strict=True)])
