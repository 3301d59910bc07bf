# SPDX-License-Identifier: Apache-2.0
"""Instructions that one call of a micro-kernel executes, counted in the emulator.

QEMU translates one instruction at a time and logs each one that it executes, with its address and function, to its
standard error. A run with two calls minus a run with one call is a call; what the loop around the calls executes is
left out by its name. Addresses become mnemonics through a disassembly of the program, which is linked statically and
so runs where it was linked to. The counts are exact and the same in every run.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOOP: Final = b"call"  # count_kernel.c's function around the calls
EXECUTED: Final = re.compile(rb"^Trace \d+: \S+ \[[0-9a-f]+/([0-9a-f]+)/[^\]]*\] *(\S*)")
LISTED: Final = re.compile(r"^ *([0-9a-f]+):\s+(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Emulator:
    """The emulator, the program it runs (count_kernel.c) and what each address of that holds."""

    qemu: Path
    program: Path
    mnemonics: dict[int, str]

    @classmethod
    def open(cls, qemu: Path, program: Path, objdump: Path) -> Emulator:
        """Disassemble the program once."""
        command = [str(objdump), "--disassemble", "--no-show-raw-insn", "--mattr=+all", str(program)]
        listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found = {int(address, 16): mnemonic for address, mnemonic in LISTED.findall(listing)}
        return cls(qemu, program, found)

    def version(self) -> str:
        """Return what the emulator says of itself."""
        said = subprocess.run([str(self.qemu), "--version"], check=True, capture_output=True, text=True)
        return said.stdout.splitlines()[0]

    def count(self, cpu: str, kernel: str, shape: dict[str, int]) -> Counter[str]:
        """Return how often one call of the kernel executes each mnemonic."""
        words = [f"{name}={value}" for name, value in shape.items()]
        once = self._executed(cpu, [kernel, "1", *words])
        twice = self._executed(cpu, [kernel, "2", *words])
        call: Counter[str] = Counter()
        for address, times in twice.items():
            call[self.mnemonics.get(address, "?")] += times - once[address]
        return +call

    def _executed(self, cpu: str, arguments: list[str]) -> Counter[int]:
        """Run the program; return how often each address was executed, the loop around the calls left out."""
        options = ["-cpu", cpu, "-one-insn-per-tb", "-d", "exec,nochain"]
        command = [str(self.qemu), *options, str(self.program), *arguments]
        counted: Counter[int] = Counter()
        said = b""
        # Without an environment the start of the program takes the same path everywhere.
        with subprocess.Popen(command, env={}, stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            for line in process.stderr:
                executed = EXECUTED.match(line)
                if executed is None:
                    said += line
                elif executed[2] != LOOP:
                    counted[int(executed[1], 16)] += 1
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(arguments)} on {cpu}: {said.decode().strip() or process.returncode}")
        return counted
