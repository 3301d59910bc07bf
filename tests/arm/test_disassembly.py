# SPDX-License-Identifier: Apache-2.0
"""Every instruction is one that its processor has, in the mode that it runs in.

An emulator judges what it executes; this judges all that was built, for Linux, macOS and Android. Three kinds of units:

* ordinary ones, which run on any arm64 processor or are guarded by a tier: no SVE and no SME in them. A processor with
  SME need not have SVE (Apple's M4 has not), and compilers know no better than their flags.
* streaming ones, `*_sme.c`, `*_sme2.c` and the assembly beside them: they are entered in streaming mode, where Advanced
  SIMD is illegal without FA64. They call nothing, since what they would call is an ordinary unit.
* the entry, which turns the mode on and off: outside the mode it may save ZA, and that is all it does there.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.arm.binary import Instruction, instructions, objects, tool
from tests.arm.processors import CP

BUILDS = (f"linux-{CP}", f"macos-{CP}", "android-arm64")

SCALABLE_OPERAND = re.compile(r"\b(z\d+|p\d+|pn\d+|za\d*[hv]?|zt0|svcr)\b", re.IGNORECASE)
SCALABLE_MNEMONIC = re.compile(
    r"cnt[bhwd]|(inc|dec)[bhwdp]|rds?vl|adds?[vp]l|smstart|smstop|ptrues?|whil\w+|(set|rd|wr)ffr\w*|brk\w+"
)
# Vector registers with an arrangement, and the forms on single registers that belong to Advanced SIMD all the same.
ADVANCED_SIMD_OPERAND = re.compile(r"\bv\d+\.")
ADVANCED_SIMD_SCALAR = re.compile(
    r"(movi|mvni) .*|([su]cvtf|fcvt[zanpm][su]) [sdh]\d+, [sdh]\d+.*|frecp[ex] .*|frsqrte .*"
)

OUTSIDE = re.compile(r"smstart|smstop|addsvl .*|str za\[.*")


def scalable(code: Instruction) -> bool:
    return bool(SCALABLE_OPERAND.search(code.operands) or SCALABLE_MNEMONIC.fullmatch(code.mnemonic))


def advanced_simd(code: Instruction) -> bool:
    text = f"{code.mnemonic} {code.operands}"
    return bool(ADVANCED_SIMD_OPERAND.search(code.operands) or ADVANCED_SIMD_SCALAR.fullmatch(text))


def is_entry(file: Path) -> bool:
    return file.name == "entry.S.o"


def is_streaming(file: Path) -> bool:
    return not is_entry(file) and bool(re.search(r"_sme2?\.[cS]\.o$", file.name))


@pytest.fixture(scope="module", params=BUILDS)
def units(request: pytest.FixtureRequest) -> list[Path]:
    return objects(request.param)


@pytest.fixture(scope="module")
def code(units: list[Path]) -> list[Instruction]:
    return list(instructions(units))


def test_the_disassembler_sees_what_it_should(code: list[Instruction]) -> None:
    """Or the tests below would find nothing for want of looking."""
    assert not [each for each in code if each.mnemonic in {"<unknown>", ".word", "udf"}]
    assert [each for each in code if each.mnemonic == "smopa" and is_streaming(each.file)]
    assert [each for each in code if each.mnemonic == "luti4" and is_streaming(each.file)]
    assert [each for each in code if each.mnemonic == "sdot" and advanced_simd(each)]
    assert [each for each in code if each.mnemonic == "smmla" and advanced_simd(each)]
    assert [each for each in code if each.mnemonic == "smstart" and is_entry(each.file)]


def test_nothing_scalable_in_ordinary_units(code: list[Instruction]) -> None:
    ordinary = [each for each in code if not is_streaming(each.file) and not is_entry(each.file)]
    assert not [each for each in ordinary if scalable(each)]


def test_entry_does_nothing_scalable_but_switch_and_save(code: list[Instruction]) -> None:
    texts = [f"{each.mnemonic} {each.operands}".strip() for each in code if is_entry(each.file) and scalable(each)]
    assert not [text for text in texts if not OUTSIDE.fullmatch(text)]


def test_no_advanced_simd_in_streaming_units(code: list[Instruction]) -> None:
    assert not [each for each in code if is_streaming(each.file) and advanced_simd(each)]


def test_streaming_units_call_only_each_other(units: list[Path]) -> None:
    streaming = [file for file in units if is_streaming(file)]
    defined = set(tool("llvm-nm", "-j", "--defined-only", "--no-sort", *streaming).split())
    assert not set(tool("llvm-nm", "-j", "--undefined-only", *streaming).split()) - defined


def test_no_runtime_of_the_matrix_unit_is_needed(units: list[Path]) -> None:
    assert not re.findall(r"\b_*arm_\w+", tool("llvm-nm", "-j", "--undefined-only", *units))
