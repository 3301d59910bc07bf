# SPDX-License-Identifier: Apache-2.0
"""A kernel has one name: its file, its symbol and its row carry it, and it says what the row says."""

from __future__ import annotations

import re

import pytest

from tests.contract.kernels import GRAMMAR, KERNELS, OPERAND, Row, rows

GUARD = {
    "SP_TIER_REF": "",
    "SP_TIER_AVX2": "SP_BUILT_AVX2",
    "SP_TIER_AVX512": "SP_BUILT_AVX512",
    "SP_TIER_NEON": "SP_BUILT_NEON",
    "SP_TIER_NEON_DOTPROD": "SP_BUILT_NEON",
    "SP_TIER_NEON_I8MM": "SP_BUILT_NEON",
    "SP_TIER_SME": "SP_BUILT_SME",
    "SP_TIER_SME2": "SP_BUILT_SME2",
}


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_row_and_name_agree(row: Row) -> None:
    name = GRAMMAR.fullmatch(row.name)
    assert name is not None, "sp_<op>_<dst>_<lhs>[_<rhs>]_<mr>x<nr>_<isa>[_<feature>]"
    assert (int(name["mr"]), int(name["nr"])) == (row.mr, row.nr)
    tier = f"SP_TIER_{name['isa'].upper()}"
    extended = f"{tier}_{(name['feature'] or '').upper()}"  # a feature makes a tier of its own, or is all of its tier
    assert row.tier == (extended if extended in GUARD else tier)
    assert row.guard == GUARD[row.tier]
    for operand in filter(None, (name["dst"], name["lhs"], name["rhs"])):
        assert OPERAND.fullmatch(operand), operand


def test_every_file_defines_its_symbol() -> None:
    missing = []
    for row in rows():
        source = (row.file.parent / f"{row.name}.c").read_text()
        if not re.search(rf"^[a-z].*\b{row.name}\(|\b[A-Z_]+\({row.name}\b", source, re.MULTILINE):
            missing.append(row.name)
    assert not missing


def test_names_are_unique() -> None:
    names = [row.name for row in rows()]
    assert sorted(names) == sorted(set(names))


def test_every_kernel_file_has_a_row() -> None:
    files = {path.stem for path in KERNELS.glob("*/sp_*.c")}
    assert files == {row.name for row in rows()}


def test_every_slot_has_one_reference() -> None:
    slots = re.findall(r"^ +(SP_SLOT_\w+),", (KERNELS / "families.h").read_text(), re.MULTILINE)
    references = [row.slot for row in rows() if row.tier == "SP_TIER_REF"]
    assert sorted(references) == sorted(slots)
