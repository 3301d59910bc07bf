# SPDX-License-Identifier: Apache-2.0
"""Prints rows as llama-bench does: a Markdown table, JSON or CSV.

The table quotes mean ± standard deviation (llama-bench's figure) and the median, which is the one to compare.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from smepilot.bench.suite import Row
from smepilot.errors import FileFormatError

if TYPE_CHECKING:
    from smepilot.bench.versus import Duel

FORMATS = ("table", "json", "csv")
COLUMNS = ("engine", "model", "test", "setting", "unit", "sample", "value")


def render(rows: Sequence[Row], style: str) -> str:
    """The rows in one of FORMATS, ending in a newline."""
    return {"table": table, "json": as_json, "csv": as_csv}[style](rows)


def markdown(header: Sequence[str], body: Sequence[Sequence[str]], left: int = 1) -> str:
    """An aligned Markdown table; all columns but the first `left` are numbers and lean to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(header, *body, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * width if i < left else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return "\n".join([line(header), f"| {' | '.join(rule)} |", *map(line, body)]) + "\n"


def table(rows: Sequence[Row]) -> str:
    """Model, test, setting and class; the samples' figures in their unit, and the fraction of the roofline."""
    header = ("model", "test", "setting", "class", "mean", "± sd", "median", "unit", "roofline")
    body = []
    for row in rows:
        total = row.summary
        figures = [f"{value:.2f}" for value in (total.mean, total.sd, total.median)]
        names = [row.model, row.test, row.settings, row.extra.get("class", "-")]
        body.append([*names, *figures, row.unit, percent(row.extra.get("roofline"))])
    return markdown(header, body, left=4)


def percent(share: float | None) -> str:
    """`61 %`, or a dash for what was not measured."""
    return "-" if share is None else f"{100 * share:.0f} %"


def as_json(rows: Sequence[Row]) -> str:
    """A list of objects: every field of a row, and the summary of its samples."""
    return json.dumps([{**asdict(row), "summary": asdict(row.summary)} for row in rows], indent=2) + "\n"


def as_csv(rows: Sequence[Row]) -> str:
    """One line per sample under the header COLUMNS."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        for number, value in enumerate(row.samples):
            writer.writerow([row.engine, row.model, row.test, row.settings, row.unit, number, f"{value:.6g}"])
    return out.getvalue()


def from_csv(text: str) -> list[Row]:
    """Reads `as_csv` back; settings stay text, under the key "setting".

    Raises:
        FileFormatError: The text is not such a table.
    """
    groups: dict[tuple[str, ...], list[float]] = {}
    reader = csv.reader(io.StringIO(text))
    if tuple(next(reader, ())) != COLUMNS:
        raise FileFormatError(f"not a table of samples: its first line is not {','.join(COLUMNS)}")
    for number, line in enumerate(reader, 2):
        try:
            *key, _, value = line
            groups.setdefault(tuple(key), []).append(float(value))
        except ValueError:
            raise FileFormatError(f"line {number} of the samples is damaged: {','.join(line)!r}") from None
    return [
        Row(engine, model, test, {"setting": setting}, tuple(values), unit)
        for (engine, model, test, setting, unit), values in groups.items()
    ]


def duel_table(duels: Sequence[Duel]) -> str:
    """Medians of both engines, the median ratio of neighbouring samples with its range, our class, their setting."""
    header = (
        "model",
        "test",
        "class",
        "smepilot",
        "llama.cpp",
        "unit",
        "ratio",
        "range",
        "kept",
        "llama.cpp's setting",
    )
    body = []
    for duel in duels:
        ratio, ours, theirs = duel.ratio, duel.ours.summary.median, duel.theirs.summary.median
        figures = [f"{ours:.2f}", f"{theirs:.2f}", duel.ours.unit, f"{ratio.median:.2f}"]
        spread = f"{ratio.low:.2f}-{ratio.high:.2f}"
        names = [duel.ours.model, duel.ours.test, duel.ours.extra.get("class", "-")]
        body.append([*names, *figures, spread, percent(duel.kept), duel.theirs.settings])
    return markdown(header, body, left=3)
