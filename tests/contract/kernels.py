# SPDX-License-Identifier: Apache-2.0
"""The kernel lists (``native/kernel/*/*.inc``) as data: rows, the grammar of names, the table of native/README.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

KERNELS = Path(__file__).resolve().parent.parent.parent / "native" / "kernel"

# sp_<op>_<dst>_<lhs>[_<rhs>]_<mr>x<nr>_<isa>[_<feature>]
GRAMMAR = re.compile(
    r"sp_(?P<op>[a-z]+)"
    r"_(?P<dst>[a-z][a-z0-9]*)_(?P<lhs>[a-z][a-z0-9]*)(_(?P<rhs>[a-z][a-z0-9]*))?"
    r"_(?P<mr>[0-9]+)x(?P<nr>[0-9]+)"
    r"_(?P<isa>ref|avx2|avx512|neon|sme2?)(_(?P<feature>vnni|dotprod|i8mm))?"
)
# An operand is a type, then how its numbers are scaled (r per row; s symmetric, a affine, g per token, with the length
# of a group) or laid out.
OPERAND = re.compile(r"(f32|f16|bf16|i64|i32|q[48])(r|[asg][0-9]+)?(p[0-9]+x[0-9]+)?")

ROW = re.compile(
    r"^(?P<guard>#ifdef \w+|#endif)"
    r"|^SP_KERNEL\((?P<slot>\w+), (?P<tier>\w+), (?P<mr>\d+), (?P<nr>\d+), (?P<name>\w+)\)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Row:
    """One row of a list: a kernel as the registry knows it."""

    file: Path
    guard: str
    slot: str
    tier: str
    mr: int
    nr: int
    name: str


def rows() -> list[Row]:
    """Return the rows of all families, in the order of the files."""
    found = []
    for file in sorted(KERNELS.glob("*/*.inc")):
        guard = ""
        for match in ROW.finditer(file.read_text()):
            if match["guard"]:
                guard = match["guard"].removeprefix("#ifdef ").removeprefix("#endif")
            else:
                found.append(
                    Row(file, guard, match["slot"], match["tier"], int(match["mr"]), int(match["nr"]), match["name"])
                )
    return found


def table() -> str:
    """Return the table of kernels as Markdown: one line per operation, one column per tier, largest tiles inside."""
    tiers = list(dict.fromkeys(row.tier for row in rows()))
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows():
        name = GRAMMAR.fullmatch(row.name)
        assert name is not None, row.name
        stem = row.name[: name.start("mr") - 1]
        told = row.tier.endswith(f"_{(name['feature'] or '').upper()}")
        feature = f" {name['feature']}" if name["feature"] and not told else ""
        cells.setdefault((row.slot, stem), {})[row.tier] = f"{row.mr}x{row.nr}{feature}"
    head = ["operation", "slot", *(tier.removeprefix("SP_TIER_").lower() for tier in tiers)]
    lines = [head, ["---"] * len(head)]
    for (slot, stem), tiles in cells.items():
        lines.append([f"`{stem}`", slot.removeprefix("SP_SLOT_"), *(tiles.get(tier, "–") for tier in tiers)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
