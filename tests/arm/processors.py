# SPDX-License-Identifier: Apache-2.0
"""Processors that are emulated: what each one has, and so which tiers must run on it.

An emulator's default processor has everything and so finds no fault. These have exactly what theirs have:

* m4: SME2 at 512 bits, as Apple's M4: no SVE outside streaming mode, no NEON inside (no FA64). An instruction in the
  wrong place is illegal here.
* sme1: SME without SME2, without FA64. The newest emulator cannot take SME2 away from SME; an older one never had it.
  That one has no SME without SVE, so on it only NEON in streaming mode is illegal; SVE outside is m4's to find.
* kunpeng: SVE and SME of version 1, with FA64, streaming vectors as long as the others.
* sme2_128, sme2_2048: the shortest and the longest vectors there can be, for the kernels alone.
* n2, a76, a53: the steps of NEON: with int8 products of matrices, with dot products, with neither.

``python -m tests.arm.processors NAME`` prints the command that a program's name is put behind.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from tests.conftest import ROOT

CROSS = ROOT / "build" / "cross"
PYTHON = os.environ.get("CROSS_PYTHON", "3.11")  # the version that was built for
CP = f"cp{PYTHON.replace('.', '')}"
DEBIAN = CROSS / f"debian-{PYTHON}"  # arm64's Python and libraries
NEWEST = CROSS / "qemu-trixie-backports"
BEFORE_SME2 = CROSS / "qemu-trixie"

NEON = ("scalar", "neon")
DOTPROD = (*NEON, "neon_dotprod")
I8MM = (*DOTPROD, "neon_i8mm")
SME = (*I8MM, "sme")
SME2 = (*SME, "sme2")

LENGTHS = (128, 256, 512, 1024, 2048)


@dataclass(frozen=True)
class Processor:
    """One processor: the words that emulate it, and the tiers that it has."""

    name: str
    cpu: str
    tiers: tuple[str, ...]
    emulator: str = str(NEWEST)
    kernels_alone: bool = False

    def command(self, *program: object) -> list[str]:
        """The command that runs an arm64 program on it."""
        return [self.emulator, "-cpu", self.cpu, "-L", str(DEBIAN), *map(str, program)]


def streaming(bits: int) -> str:
    """Words that leave one length of streaming vectors."""
    others = ",".join(f"sme{length}=off" for length in LENGTHS if length != bits)
    return f"{others},sme{bits}=on"


PROCESSORS = (
    Processor("m4", f"max,sve=off,sme_fa64=off,{streaming(512)}", SME2),
    Processor("sme1", f"max,sme_fa64=off,{streaming(512)}", SME, str(BEFORE_SME2)),
    Processor("kunpeng", f"max,sve-default-vector-length=64,{streaming(512)}", SME, str(BEFORE_SME2)),
    Processor("n2", "neoverse-n2", I8MM),
    Processor("a76", "cortex-a76", DOTPROD),
    Processor("a53", "cortex-a53", NEON),
    Processor("sme2_128", f"max,sve=off,sme_fa64=off,{streaming(128)}", SME2, kernels_alone=True),
    Processor("sme2_2048", f"max,sve=off,sme_fa64=off,{streaming(2048)}", SME2, kernels_alone=True),
)


if __name__ == "__main__":
    (chosen,) = (processor for processor in PROCESSORS if processor.name in sys.argv[1:])
    print(*chosen.command())
