# SPDX-License-Identifier: Apache-2.0
"""What is inside the files that were built for Arm, as LLVM's tools print it."""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.arm.processors import CP, CROSS
from tests.conftest import ROOT


def tool(name: str, *arguments: object) -> str:
    """What one of the tools in build/cross/bin prints."""
    command = [str(CROSS / "bin" / name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def wheel(platform: str) -> Path:
    """The wheel in build/wheels whose platform tag begins like this."""
    (path,) = (ROOT / "build" / "wheels").glob(f"smepilot-*-{CP}-{platform}*.whl")
    return path


def extension(path: Path, folder: Path) -> Path:
    """The extension of a wheel, unpacked to `folder`."""
    with zipfile.ZipFile(path) as archive:
        (name,) = [name for name in archive.namelist() if "/_core." in name and name.endswith(".so")]
        return Path(archive.extract(name, folder))


@dataclass(frozen=True)
class Instruction:
    """One instruction: the object file and the function it belongs to, and its text."""

    file: Path
    function: str
    mnemonic: str
    operands: str


SYNTAX = "--triple=aarch64-linux-gnu"  # objects of macOS too: their own syntax would write v0.4s apart


def objects(build: str) -> list[Path]:
    """The engine's object files of a build in build/cross."""
    return sorted((CROSS / build / "CMakeFiles" / "sp_native.dir").rglob("*.o"))


def instructions(files: list[Path]) -> Iterator[Instruction]:
    """Every instruction of the object files, in order."""
    file, function = Path(), ""
    for line in tool("llvm-objdump", "-d", "--no-show-raw-insn", "--mattr=+all", SYNTAX, *files).splitlines():
        if code := re.fullmatch(r"\s+[0-9a-f]+:\s+(\S+)\s*(.*)", line):
            operands = code[2].partition("//")[0].partition("<")[0].strip()
            yield Instruction(file, function, code[1], operands)
        elif label := re.fullmatch(r"[0-9a-f]+ <(.+)>:", line):
            function = label[1]
        elif "\tfile format " in line:
            file = Path(line.partition(":\t")[0])
