# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of micro-kernels in the emulator and prints them beside what they should be.

    make arm-count                                   # all
    make arm-count ARGS="q4s32 --record tests/bench/runs"

A row is a kernel at a shape: instructions between entry and exit, per product instruction (SDOT, SMMLA, SMOPA, FMOPA),
the ideal, and the ratio to it. Where a bar is missed, the table says what the instructions beyond the ideal do, or,
where there is no ideal, those beside the products. `--record` keeps the run: the table, the conditions, all numbers.
count_rows.py says what is counted, count_ideal.py what the ideal is.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tests.arm.count_rows import CPUS, ROWS, Row
from tests.arm.count_trace import Emulator

# What an instruction does, by its mnemonic; the first pattern that fits.
KINDS: Final = (
    ("load", r"ld[pru1-4].*|ldur|ld1.*|ldr.*"),
    ("store", r"st[pru1-4].*|stur"),
    ("dot", r"[su]*dot|[su]*mmla|[su]mlal?2?|[su]mull2?|.mop[as]"),
    ("zip", r"zip[12]?|trn[12]|uzp[12]|ext"),
    ("scale", r"scvtf|fmul|fmla|fmadd|fadd"),
    ("widen", r"fcvt.*"),
    ("unpack", r"and|ushr|sshr|luti[24]"),
    ("start", r"movi|dup|shl|zero"),
    ("move", r"mov|orr|fmov|mova|mov[a-z]+"),
    (
        "loop",
        r"add|subs?|cmp|c?b.*|cbn?z|ccmp|csel|ret|lsl|whilel.|ptrue|madd|mul|adrp?|lsr|tbn?z|cinc|csetm?|cnt.|rdvl|addvl",
    ),
    ("enter", r"smstart|smstop|msr|mrs"),
)


@dataclass(frozen=True)
class Result:
    """A row and what was counted."""

    row: Row
    mnemonics: Counter[str]

    @property
    def total(self) -> int:
        """Instructions of one call."""
        return self.mnemonics.total()

    @property
    def products(self) -> int:
        """Product instructions of one call."""
        return sum(self.mnemonics[name] for name in self.row.products)

    @property
    def kinds(self) -> Counter[str]:
        """Instructions by what they do."""
        kinds: Counter[str] = Counter()
        for mnemonic, count in self.mnemonics.items():
            kind = next((kind for kind, pattern in KINDS if re.fullmatch(pattern, mnemonic)), "other")
            kinds[kind] += count
        return kinds

    @property
    def per_product(self) -> float:
        """Instructions for each product instruction."""
        return self.total / self.products

    @property
    def of_ideal(self) -> float | None:
        """Instructions over the ideal's."""
        return self.total / self.row.ideal.total() if self.row.ideal else None

    @property
    def kept(self) -> bool:
        """Whether the row's bar, if it has one, is kept."""
        row = self.row
        return (row.per_product is None or self.per_product <= row.per_product) and (
            row.of_ideal is None or (self.of_ideal is not None and self.of_ideal <= row.of_ideal)
        )

    def beyond(self) -> str:
        """Say what the instructions beyond the ideal, or beside the products, do: shares of all instructions."""
        extra = self.kinds
        extra.subtract(self.row.ideal or {"dot": self.products})
        shares = [f"{kind} {count / self.total:.1%}" for kind, count in extra.most_common() if count > 0]
        return ", ".join(shares[:6])

    def cells(self) -> list[str]:
        """Return the row of the table."""
        row = self.row
        bar = f"≤ {row.per_product} each" if row.per_product else f"≤ {row.of_ideal} ideal" if row.of_ideal else ""
        return [
            f"`{row.kernel}`",
            " ".join(f"{name}={value}" for name, value in row.shape.items()),
            str(self.total),
            f"{self.per_product:.3f}",
            str(row.ideal.total()) if row.ideal else "",
            f"{self.of_ideal:.3f}" if self.of_ideal else "",
            bar + ("" if not bar else " kept" if self.kept else " MISSED"),
            "" if self.kept else self.beyond(),
        ]

    def record(self) -> dict[str, Any]:
        """Return all numbers."""
        row = self.row
        return {
            "kernel": row.kernel,
            "cpu": CPUS[row.tier],
            "shape": row.shape,
            "instructions": self.total,
            "products": self.products,
            "per_product": round(self.per_product, 4),
            "ideal": dict(row.ideal) if row.ideal else None,
            "ratio": round(self.of_ideal, 4) if self.of_ideal else None,
            "bar": {"per_product": row.per_product, "ratio": row.of_ideal},
            "kept": self.kept,
            "kinds": dict(self.kinds.most_common()),
            "mnemonics": dict(self.mnemonics.most_common()),
        }


HEAD: Final = ("kernel", "shape", "instructions", "per product", "ideal", "ratio", "bar", "beyond")


def table(results: list[Result]) -> str:
    """Return the results as a Markdown table."""
    lines = ["| " + " | ".join(HEAD) + " |", "| --- | --- | ---: | ---: | ---: | ---: | --- | --- |"]
    lines += ["| " + " | ".join(result.cells()) + " |" for result in results]
    return "\n".join(lines)


def record(folder: Path, results: list[Result], conditions: dict[str, Any]) -> Path:
    """Keep a run: README.md, env.json and raw.json in a folder of its own."""
    run = folder / f"{datetime.now(UTC):%Y-%m-%d}-qemu-arm64-instructions"
    run.mkdir(parents=True, exist_ok=True)
    intro = "Instructions of one call between entry and exit of the kernel, counted by `make arm-count`.\n"
    (run / "README.md").write_text(f"# Instructions of Arm kernels\n\n{intro}\n{table(results)}\n")
    (run / "env.json").write_text(json.dumps(conditions, indent=2) + "\n")
    (run / "raw.json").write_text(json.dumps([result.record() for result in results], indent=1) + "\n")
    return run


def main() -> int:
    """Count, print, record; fail if a bar is missed."""
    parser = argparse.ArgumentParser(prog="make arm-count")
    parser.add_argument("--qemu", type=Path, required=True)
    parser.add_argument("--objdump", type=Path, required=True)
    parser.add_argument("--compiler", type=Path, required=True)
    parser.add_argument("--program", type=Path, required=True, help="count_kernel.c, built")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="keep the run in a folder in FOLDER")
    parser.add_argument("words", nargs="*", metavar="WORD", help="count kernels whose name contains one of these")
    options = parser.parse_args()

    emulator = Emulator.open(options.qemu, options.program, options.objdump)
    results: list[Result] = []
    for row in ROWS:
        if not options.words or any(word in row.kernel for word in options.words):
            try:
                results.append(Result(row, emulator.count(CPUS[row.tier], row.kernel, row.shape)))
            except RuntimeError as error:
                print(f"error: {error}", file=sys.stderr)
                return 1
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(table(results))
    if options.record:
        compiler = subprocess.run([str(options.compiler), "--version"], check=True, capture_output=True, text=True)
        conditions = {
            "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "emulator": emulator.version(),
            "compiler": compiler.stdout.splitlines()[0],
            "counted": "instructions of one call, by differences of two calls and one; the calling loop is left out",
            "cpus": CPUS,
        }
        print(f"recorded in {record(options.record, results, conditions)}", file=sys.stderr)
    return 0 if all(result.kept for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
