# SPDX-License-Identifier: Apache-2.0
"""What this engine promises against llama.cpp: one line a test, with its bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smepilot.bench import Duel
from smepilot.bench.report import markdown, percent

KEPT = 0.4  # of our quiet rate, at least, beside a busy neighbour


@dataclass(frozen=True)
class Promise:
    """One test of one model.

    Attributes:
        model: A key of peers.MODELS.
        test: A case's name, "first token" or "peak memory".
        bar: The ratio to llama.cpp that must be reached: at least, for rates; at most, for time and memory.
        roofline: A share of the read bandwidth that will do instead; None for none.
    """

    model: str
    test: str
    bar: float
    roofline: float | None = None

    @property
    def name(self) -> str:
        """What a filter's words are looked for in."""
        return f"{self.model} {self.test}"


PROMISES = (
    Promise("smollm2 q4_0", "pp512", 1.7),
    Promise("smollm2 q4_0", "pp2048", 2.5),
    Promise("smollm2 q4_0", "tg64", 1.25),
    Promise("smollm2 q4_0", "tg64 @ d2048", 1.8),
    Promise("smollm2 q4_0", "first token", 0.7),
    Promise("smollm2 q4_0", "peak memory", 0.8),
    Promise("smollm2 q8_0", "pp512", 2.3),
    Promise("smollm2 q4_1", "pp512", 4.5),
    Promise("smollm2 q4_1", "first token", 0.7),
    Promise("smollm2 q4_1", "peak memory", 1.0),
    Promise("llama-3.2-1b q4_0", "pp512", 2.0),
    Promise("llama-3.2-1b q4_0", "tg64", 1.1, roofline=0.92),
    Promise("llama-3.2-1b q4_0", "tg64 @ d2048", 1.5),
    Promise("llama-3.2-1b q4_0", "tg64 x8", 2.5),
    Promise("llama-3.2-1b q4_0", "first token", 0.7),
    Promise("llama-3.2-1b q4_0", "peak memory", 0.8),
    Promise("llama-3.2-3b q4_0", "pp512", 2.0),
    Promise("llama-3.2-3b q4_0", "tg64", 1.05, roofline=0.92),
    Promise("llama-3.2-3b q4_0", "tg64 @ d2048", 1.5),
)


@dataclass(frozen=True)
class Outcome:
    """A promise and what was measured; `busy` is the same test beside a busy neighbour, for rates."""

    promise: Promise
    duel: Duel
    busy: Duel | None = None

    @property
    def held(self) -> bool:
        """Whether the bar was reached."""
        share = self.duel.ours.extra.get("roofline")
        if self.promise.roofline is not None and share is not None and share >= self.promise.roofline:
            return True
        ratio = self.duel.ratio.median
        return ratio >= self.promise.bar if self.duel.ours.unit == "t/s" else ratio <= self.promise.bar

    @property
    def steady(self) -> bool:
        """Whether enough was left beside a busy neighbour; true where that was not measured."""
        return self.busy is None or self.busy.kept is None or self.busy.kept >= KEPT


def render(outcomes: Sequence[Outcome]) -> str:
    """The table of a run: ratio with range and bar, the fraction of the roofline, and what a busy neighbour leaves."""
    header = ("model", "test", "smepilot", "llama.cpp", "unit", "ratio", "range", "bar", "held", "roofline")
    neighbour = ("busy, of ours", "busy, ratio", "llama.cpp's setting")
    return markdown((*header, *neighbour), [_line(outcome) for outcome in outcomes], left=2)


def _line(outcome: Outcome) -> list[str]:
    duel, ratio, busy = outcome.duel, outcome.duel.ratio, outcome.busy
    sign = "≥" if duel.ours.unit == "t/s" else "≤"
    return [
        outcome.promise.model,
        outcome.promise.test,
        f"{duel.ours.summary.median:.2f}",
        f"{duel.theirs.summary.median:.2f}",
        duel.ours.unit,
        f"{ratio.median:.2f}",
        f"{ratio.low:.2f}-{ratio.high:.2f}",
        f"{sign} {outcome.promise.bar:g}",
        "yes" if outcome.held and outcome.steady else "no",
        percent(duel.ours.extra.get("roofline")),
        percent(busy.kept) if busy else "-",
        f"{busy.ratio.median:.2f}" if busy else "-",
        duel.theirs.settings,
    ]
