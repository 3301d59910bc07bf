# SPDX-License-Identifier: Apache-2.0
"""The proof that the proof works: kernels spoilt by one instruction in the wrong mode end the C tests on the M4.

A copy of a source is spoilt, compiled with the build's own command, and takes its original's place in a copy of the
test program. On a processor that has everything the spoilt program passes, which is why none is used as a judge.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.arm.binary import instructions
from tests.arm.processors import CROSS, NEWEST, PROCESSORS, Processor, streaming
from tests.arm.test_disassembly import OUTSIDE, advanced_simd, is_entry, scalable
from tests.conftest import ROOT

BUILD = CROSS / "test-arm64"
NATIVE = ROOT / "native"
TEST = "kernel_gemm_q8r"  # runs the kernels that are spoilt here

(M4,) = (processor for processor in PROCESSORS if processor.name == "m4")
EVERYTHING = Processor("everything", f"max,{streaming(512)}", M4.tiers, str(NEWEST))


@dataclass(frozen=True)
class Fault:
    """One instruction too many: the source, where in it, and what is put in behind."""

    source: str
    behind: str
    instruction: str


FAULTS = {
    "Advanced SIMD in streaming mode": Fault(
        "kernel/gemm/sp_gemm_f32_q8r_q8r_32x32_sme2.c",
        r"^SP_BODY\(.*\{$",
        '    __asm__ volatile("add v0.4s, v0.4s, v0.4s" ::: "z0");',
    ),
    "SVE outside streaming mode": Fault("kernel/sme/entry.S", r"^ +mov +x29, sp$", "    cntd    x9"),
}


def commands() -> list[str]:
    """The commands that make sp_test, its link last."""
    ninja = Path(sys.executable).parent / "ninja"
    command = [ninja, "-C", BUILD, "-t", "commands", "sp_test"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def shell(command: str) -> None:
    done = subprocess.run(["bash", "-c", command], cwd=BUILD, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def spoilt(fault: Fault, folder: Path) -> tuple[Path, Path]:
    """Build the test program with the fault; return it and the spoilt object."""
    source = NATIVE / fault.source
    text, count = re.subn(
        fault.behind, lambda match: f"{match[0]}\n{fault.instruction}", source.read_text(), flags=re.M
    )
    assert count == 1
    copy = folder / source.name
    copy.write_text(text)
    made = commands()
    (compile_it,) = (line for line in made if line.endswith(f"-c {source}"))
    (at,) = re.findall(r"-o (\S+\.o)", compile_it)
    original = Path(at)
    spoilt_object = folder / original.name
    shell(compile_it.replace(f"-o {original}", f"-o {spoilt_object}").replace(f"-c {source}", f"-c {copy}"))
    library, program = folder / "libsp_native.a", folder / "sp_test"
    shell(f"cp libsp_native.a {library} && {CROSS}/bin/llvm-ar r {library} {spoilt_object}")
    shell(made[-1].replace("-o sp_test", f"-o {program}").replace("libsp_native.a", str(library)))
    return program, spoilt_object


def run(processor: Processor, program: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(processor.command(program, TEST), capture_output=True, text=True, check=False)


def test_sound_kernels_pass() -> None:
    done = run(M4, BUILD / "sp_test")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_ends_the_tests_on_the_m4(name: str, tmp_path: Path) -> None:
    program, _ = spoilt(FAULTS[name], tmp_path)
    assert run(EVERYTHING, program).returncode == 0
    assert run(M4, program).returncode == -signal.SIGILL


def test_the_disassembly_finds_them_too(tmp_path: Path) -> None:
    _, streaming_unit = spoilt(FAULTS["Advanced SIMD in streaming mode"], tmp_path)
    assert any(map(advanced_simd, instructions([streaming_unit])))
    _, entry = spoilt(FAULTS["SVE outside streaming mode"], tmp_path)
    assert is_entry(entry)
    found = [f"{code.mnemonic} {code.operands}" for code in instructions([entry]) if scalable(code)]
    assert [text for text in found if not OUTSIDE.fullmatch(text.strip())]
