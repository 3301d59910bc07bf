# SPDX-License-Identifier: Apache-2.0
"""Tables, JSON and CSV of rows."""

from __future__ import annotations

import json

import pytest

from smepilot.bench.report import as_csv, duel_table, from_csv, markdown, render
from smepilot.bench.suite import Row
from smepilot.bench.versus import Duel
from smepilot.errors import FileFormatError

OURS = Row(
    "smepilot", "m.gguf", "pp512", {"threads": 2}, (100.0, 110.0, 90.0), extra={"roofline": 0.614, "class": "rowwise"}
)
THEIRS = Row("llama.cpp", "m.gguf", "pp512", {"threads": 2, "flash": True}, (50.0, 50.0, 60.0))


def test_markdown_aligns_names_left_and_numbers_right() -> None:
    assert markdown(("test", "t/s"), [("pp512", "1.00"), ("tg", "10.00")]) == (
        "| test  |   t/s |\n| ----- | ----: |\n| pp512 |  1.00 |\n| tg    | 10.00 |\n"
    )


def test_table() -> None:
    *_, line = render([OURS], "table").splitlines()
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells == ["m.gguf", "pp512", "threads=2", "rowwise", "100.00", "10.00", "100.00", "t/s", "61 %"]


def test_json_carries_samples_and_summary() -> None:
    (record,) = json.loads(render([OURS], "json"))
    assert record["samples"] == [100.0, 110.0, 90.0]
    assert record["summary"]["median"] == 100.0
    assert record["test"] == "pp512"
    assert record["extra"] == {"roofline": 0.614, "class": "rowwise"}


def test_csv_has_one_line_per_sample() -> None:
    lines = render([OURS, THEIRS], "csv").splitlines()
    assert lines[0] == "engine,model,test,setting,unit,sample,value"
    assert lines[4] == "llama.cpp,m.gguf,pp512,threads=2 flash=True,t/s,0,50"
    assert len(lines) == 7


def test_csv_reads_back() -> None:
    rows = from_csv(as_csv([OURS, THEIRS]))
    assert [(row.engine, row.model, row.test, row.samples, row.unit) for row in rows] == [
        (row.engine, row.model, row.test, row.samples, row.unit) for row in (OURS, THEIRS)
    ]


@pytest.mark.parametrize("text", ["", "a,b\n", as_csv([OURS]) + "smepilot,m\n", as_csv([OURS]).replace("110", "x")])
def test_a_damaged_csv_is_refused(text: str) -> None:
    with pytest.raises(FileFormatError):
        from_csv(text)


def test_a_duel_shows_the_ratio_of_pairs_and_what_a_neighbour_left() -> None:
    quiet = Row("smepilot", "m.gguf", "pp512", {"threads": 2}, (200.0,))
    *_, line = duel_table([Duel(OURS, THEIRS, quiet)]).splitlines()
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[2:9] == ["rowwise", "100.00", "50.00", "t/s", "2.00", "1.50-2.20", "50 %"]
