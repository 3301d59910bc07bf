# SPDX-License-Identifier: Apache-2.0
"""House rules that no linter knows: licence lines, sizes, silence, nothing left undone."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

SOURCE = {".py", ".pyi", ".pyx", ".pxd", ".pxi", ".c", ".h", ".inc", ".toml", ".yml", ".in"}
NAMED = {"Makefile", "CMakeLists.txt", ".clang-format", ".ci/run"}

FILE_LINES = 400
FUNCTION_LINES = 60
C_FUNCTION_LINES = 80


def tracked() -> list[Path]:
    """Return every source file, as seen from the root: what git knows or would add; without git, the whole tree."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    paths = {Path(line) for line in listing.stdout.splitlines() if (ROOT / line).is_file()}
    if listing.returncode != 0:
        paths = {each.relative_to(ROOT) for top in ("sdk", "native", "tests") for each in (ROOT / top).rglob("*")}
    return sorted(path for path in paths if path.suffix in SOURCE or str(path) in NAMED or path.name in NAMED)


FILES = tracked()
PYTHON = [path for path in FILES if path.suffix == ".py"]
SDK = [path for path in PYTHON if path.parts[0] == "sdk"]
NATIVE = [path for path in FILES if path.parts[0] == "native" and path.suffix in {".c", ".h", ".inc"}]


def each(paths: list[Path]) -> pytest.MarkDecorator:
    """Parametrise a test over files, with their names as test ids."""
    return pytest.mark.parametrize("path", paths, ids=str)


@each(FILES)
def test_licence_line(path: Path) -> None:
    head = (ROOT / path).read_text().splitlines()[:2]
    assert any(re.fullmatch(r"(#|//) SPDX-License-Identifier: Apache-2\.0", line) for line in head)


@each(FILES)
def test_file_is_small(path: Path) -> None:
    lines = len((ROOT / path).read_text().splitlines())
    assert lines <= FILE_LINES, "one file, one idea: split it"


@each(FILES)
def test_nothing_is_left_undone(path: Path) -> None:
    words = r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b|NotImplemented" r"Error"
    assert not re.search(words, (ROOT / path).read_text())


@each(PYTHON)
def test_functions_fit_a_screen(path: Path) -> None:
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            # The signature and docstring describe; what has to fit a screen is what is done.
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            assert node.end_lineno - first.lineno < FUNCTION_LINES, node.name


@each(NATIVE)
def test_c_functions_fit_a_screen(path: Path) -> None:
    start = None
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        if line.endswith("{") and line[:1].isalpha():
            start = number
        elif line.startswith("}") and start is not None:
            assert number - start <= C_FUNCTION_LINES, f"line {start}"
            start = None


@each(SDK)
def test_only_the_command_line_prints(path: Path) -> None:
    if "cli" in path.parts:
        return
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"line {node.lineno}: logging, not print"


@each(SDK)
def test_module_opens_with_its_essay(path: Path) -> None:
    assert ast.get_docstring(ast.parse((ROOT / path).read_text()))


@each(NATIVE)
def test_c_neither_prints_nor_exits(path: Path) -> None:
    code = re.sub(r"//.*|/\*.*?\*/|\"(\\.|[^\"\\])*\"", "", (ROOT / path).read_text(), flags=re.MULTILINE)
    assert not re.search(r"\b(f?printf|v?fprintf|puts|putchar|perror|_?exit|getenv)\s*\(", code)


@each([path for path in NATIVE if path.suffix == ".h"])
def test_header_is_guarded(path: Path) -> None:
    assert "\n#pragma once\n" in (ROOT / path).read_text()
