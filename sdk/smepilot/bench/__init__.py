# SPDX-License-Identifier: Apache-2.0
"""Floor 7: how fast is it, and against whom.

    cases, samples      what is measured and how samples are summed up
    suite, subject      the loop over cases, and this engine in it
    roofline            the share of the machine's own limits that a rate reaches
    synthetic, shapes   random weights at the sizes of real models
    versus              paired with llama.cpp, each in a process of its own (worker, serve, peer_llama)
    report, record      tables and kept runs;  compare  two of those

The public surface: `grid` and `run`, `synthetic`, `Versus`, `render`, `write_run`, `compare`.
"""

from __future__ import annotations

from smepilot.bench.cases import Case, grid, parse_case, parse_counts
from smepilot.bench.compare import change_table, compare, read_run
from smepilot.bench.record import Conditions, environment, usable_cores, write_run
from smepilot.bench.report import duel_table, render
from smepilot.bench.shapes import SHAPES
from smepilot.bench.suite import Row, run
from smepilot.bench.synthetic import FILE_TYPES, synthetic
from smepilot.bench.versus import Duel, Versus

__all__ = [
    "FILE_TYPES",
    "SHAPES",
    "Case",
    "Conditions",
    "Duel",
    "Row",
    "Versus",
    "change_table",
    "compare",
    "duel_table",
    "environment",
    "grid",
    "parse_case",
    "parse_counts",
    "read_run",
    "render",
    "run",
    "synthetic",
    "usable_cores",
    "write_run",
]
