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
from typing import Any

from smepilot.bench.suite import Row

FORMATS = ("table", "json", "csv")
_CSV = ("engine", "model", "test", "threads", "setting", "sample", "rate")


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
    """Model, threads, test, tokens/s and the fraction of the roofline."""
    header = ("model", "test", "threads", "t/s mean", "± sd", "median", "roofline")
    body = []
    for row in rows:
        total, share = row.summary, row.extra.get("roofline")
        figures = [f"{value:.2f}" for value in (total.mean, total.sd, total.median)]
        body.append([row.model, row.case.name, str(row.setting["threads"]), *figures, percent(share)])
    return markdown(header, body, left=2)


def percent(share: float | None) -> str:
    """`61 %`, or a dash for what was not measured."""
    return "-" if share is None else f"{100 * share:.0f} %"


def as_json(rows: Sequence[Row]) -> str:
    """A list of objects: every field of a row, its test name, summary and samples."""
    return json.dumps([_record(row) for row in rows], indent=2) + "\n"


def _record(row: Row) -> dict[str, Any]:
    return {
        "engine": row.engine,
        "model": row.model,
        "test": row.case.name,
        **asdict(row.case),
        "setting": row.setting,
        "tokens_per_second": {**asdict(row.summary), "samples": list(row.rates)},
        **row.extra,
    }


def as_csv(rows: Sequence[Row]) -> str:
    """One line per sample, with a header; rates in tokens/s."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_CSV)
    for row in rows:
        setting = " ".join(f"{key}={value}" for key, value in row.setting.items() if key != "threads")
        for number, rate in enumerate(row.rates):
            writer.writerow(
                [row.engine, row.model, row.case.name, row.setting["threads"], setting, number, f"{rate:.4f}"]
            )
    return out.getvalue()
