# SPDX-License-Identifier: Apache-2.0
"""Two kept runs side by side: what became faster, what slower, what cannot be told.

Runs are not paired, so drift of the machine is part of every difference. A change counts only when the ranges of the
samples do not overlap; with five samples a side that happens by chance once in 126.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from smepilot.bench import report
from smepilot.bench.suite import Row
from smepilot.errors import InvalidParameterError, NotFoundError

Verdict = Literal["better", "worse", "no difference"]


@dataclass(frozen=True)
class Change:
    """One test in both runs; `ratio` is the second median over the first."""

    before: Row
    after: Row

    @property
    def ratio(self) -> float:
        """Above 1 where the figure grew."""
        return self.after.summary.median / self.before.summary.median

    @property
    def verdict(self) -> Verdict:
        """Whether the second run is better: more tokens per second, or less time or memory."""
        before, after = self.before.summary, self.after.summary
        if after.low > before.high:
            return "better" if self.before.unit == "t/s" else "worse"
        if after.high < before.low:
            return "worse" if self.before.unit == "t/s" else "better"
        return "no difference"


def read_run(folder: Path) -> list[Row]:
    """The samples of a kept run.

    Raises:
        NotFoundError: The folder holds none.
    """
    path = folder / "raw.csv"
    if not path.is_file():
        raise NotFoundError(f"{folder}: not a kept run (it has no raw.csv); name a folder that --record wrote")
    return report.from_csv(path.read_text(encoding="utf-8"))


def compare(before: Sequence[Row], after: Sequence[Row]) -> list[Change]:
    """Pairs the tests that both have, in the first run's order; settings may differ when an engine chose its best.

    Raises:
        InvalidParameterError: The two share no test.
    """
    changes = []
    for row in before:
        same = [
            other for other in after if (other.engine, other.model, other.test) == (row.engine, row.model, row.test)
        ]
        exact = [other for other in same if other.settings == row.settings]
        if exact or len(same) == 1:
            changes.append(Change(row, (exact or same)[0]))
    if not changes:
        raise InvalidParameterError("the two runs have no test in common; compare runs of the same models and tests")
    return changes


def change_table(changes: Sequence[Change]) -> str:
    """The changes as a Markdown table."""
    body = [
        [
            change.before.engine,
            change.before.model,
            change.before.test,
            f"{change.before.summary.median:.2f}",
            f"{change.after.summary.median:.2f}",
            change.before.unit,
            f"{change.ratio:.3f}",
            change.verdict,
        ]
        for change in changes
    ]
    return report.markdown(("engine", "model", "test", "before", "after", "unit", "ratio", "verdict"), body, left=3)
