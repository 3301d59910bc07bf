# SPDX-License-Identifier: Apache-2.0
"""What is inside the files that were built for Arm, as LLVM's tools print it."""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.arm.processors import CROSS
from tests.conftest import ROOT


def tool(name: str, *arguments: object) -> str:
    """What one of the tools in build/cross/bin prints."""
    command = [str(CROSS / "bin" / name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def wheel(platform: str) -> Path:
    """The wheel in build/wheels whose platform tag begins like this."""
    (path,) = (ROOT / "build" / "wheels").glob(f"smepilot-*-{platform}*.whl")
    return path


def extension(path: Path, folder: Path) -> Path:
    """The extension of a wheel, unpacked to `folder`."""
    with zipfile.ZipFile(path) as archive:
        (name,) = [name for name in archive.namelist() if "/_core." in name and name.endswith(".so")]
        return Path(archive.extract(name, folder))


@dataclass(frozen=True)
class Instruction:
    """One instruction: the function it belongs to, and its text."""

    function: str
    mnemonic: str
    operands: str


def instructions(file: Path) -> Iterator[Instruction]:
    """Every instruction of an object file, in order; what the disassembler does not know would be ``<unknown>``."""
    function = ""
    for line in tool("llvm-objdump", "-d", "--no-show-raw-insn", "--mattr=+all", file).splitlines():
        if label := re.fullmatch(r"[0-9a-f]+ <(.+)>:", line):
            function = label[1]
        elif code := re.fullmatch(r"\s+[0-9a-f]+:\s+(\S+)\s*(.*)", line):
            yield Instruction(function, code[1], code[2].partition("//")[0].partition("<")[0].strip())
