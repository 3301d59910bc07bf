# SPDX-License-Identifier: Apache-2.0
"""The floors of the C engine: a folder includes folders below its own, never beside or above.

The Python floors are checked by import-linter (pyproject.toml); this is its counterpart for ``#include``.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.conftest import ROOT

NATIVE = ROOT / "native"

# Ground to top; folders on one line do not know each other. Panels are packed from rows of files, so layout stands on
# format.
FLOORS = (
    {"base"},
    {"cpu", "format"},
    {"layout"},
    {"kernel"},
    {"thread"},
    {"tile", "kv"},
    {"op", "probe"},
    {"exec"},
)
HEIGHT = {folder: height for height, floor in enumerate(FLOORS) for folder in floor}

# Stricter than the heights alone: the pool knows no arithmetic, and the partition is arithmetic only.
STRANGERS = {("thread", "kernel"), ("tile", "kernel"), ("tile", "thread")}

# libc, POSIX, the two kernels' own interfaces, and the compilers' intrinsics: the engine depends on nothing else.
SYSTEM = re.compile(
    r"(assert|ctype|errno|fenv|float|inttypes|limits|math|sched|signal|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib"
    r"|string|time|unistd|fcntl|dirent|pthread|cpuid|immintrin|arm_neon|arm_sve|arm_sme"
    r"|sys/(mman|prctl|stat|time|types|wait|auxv|sysctl|syscall|sysinfo)|asm/hwcap|linux/[a-z]+|mach/[a-z_]+|pthread/qos)\.h"
)


def sources() -> list[Path]:
    """Return every C source, header and list of the engine."""
    return sorted(path for path in NATIVE.rglob("*") if path.suffix in {".c", ".h", ".inc"})


def includes(path: Path) -> list[tuple[str, str]]:
    """Return the includes of a file as (quote, name)."""
    return re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', path.read_text(), re.MULTILINE)


def test_every_folder_has_its_floor() -> None:
    folders = {path.relative_to(NATIVE).parts[0] for path in sources()}
    assert folders <= HEIGHT.keys(), "a new folder needs its place in FLOORS"


def complaint(folder: str, quote: str, name: str) -> str | None:
    """Return what is wrong with an include in a file of `folder`, or None."""
    if quote == "<":
        return None if SYSTEM.fullmatch(name) else f"<{name}> is neither libc nor threads"
    if not (NATIVE / name).is_file():
        return f'"{name}": includes are written from native/'
    target = name.split("/")[0]
    below = target == folder or HEIGHT[target] < HEIGHT[folder]
    return None if below and (folder, target) not in STRANGERS else f"{folder} may not use {target}"


def test_includes_go_down() -> None:
    complaints = []
    for path in sources():
        where = path.relative_to(NATIVE)
        found = [complaint(where.parts[0], quote, name) for quote, name in includes(path)]
        complaints += [f"{where}: {text}" for text in found if text]
    assert not complaints
