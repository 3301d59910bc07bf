# SPDX-License-Identifier: Apache-2.0
"""House rules that no linter knows: licence lines, sizes, silence, nothing left undone. Each test lists offenders."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT

SOURCE = {".py", ".pyi", ".pyx", ".pxd", ".pxi", ".c", ".h", ".inc", ".toml", ".yml", ".in"}
NAMED = {"Makefile", "CMakeLists.txt", ".clang-format", ".ci/run"}

FILE_LINES = 400
FUNCTION_LINES = 60
C_FUNCTION_LINES = 80

# Words that promise instead of doing; spelt apart here, so that this file is clean too.
UNDONE = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b|NotImplemented" r"Error")
LICENCE = re.compile(r"(#|//) SPDX-License-Identifier: Apache-2\.0")
C_COMMENT_OR_TEXT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
C_VOICE = re.compile(r"\b(v?f?printf|puts|putchar|perror|_?exit|abort|getenv)\s*\(")


def tracked() -> list[Path]:
    """Return every source file, as seen from the root: what git knows or would add; without git, the whole tree."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    paths = {Path(line) for line in listing.stdout.splitlines() if (ROOT / line).is_file()}
    if listing.returncode != 0:
        paths = {each.relative_to(ROOT) for top in ("sdk", "native", "tests") for each in (ROOT / top).rglob("*")}
    return sorted(path for path in paths if path.suffix in SOURCE or str(path) in NAMED or path.name in NAMED)


TEXTS = {path: (ROOT / path).read_text() for path in tracked()}
TREES = {path: ast.parse(text) for path, text in TEXTS.items() if path.suffix == ".py"}
SDK = {path: tree for path, tree in TREES.items() if path.parts[0] == "sdk"}
NATIVE = {p: text for p, text in TEXTS.items() if p.parts[0] == "native" and p.suffix in {".c", ".h", ".inc"}}


def test_licence_line() -> None:
    assert not [path for path, text in TEXTS.items() if not any(map(LICENCE.fullmatch, text.splitlines()[:2]))]


def test_files_are_small() -> None:
    assert not [path for path, text in TEXTS.items() if text.count("\n") > FILE_LINES], "one file, one idea: split it"


def test_nothing_is_left_undone() -> None:
    assert not [path for path, text in TEXTS.items() if UNDONE.search(text)]


def test_functions_fit_a_screen() -> None:
    long = []
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                # Signature and docstring describe; what has to fit a screen is what is done.
                first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
                if (node.end_lineno or 0) - first.lineno >= FUNCTION_LINES:
                    long.append((path, node.name))
    assert not long


def c_functions(text: str) -> Iterator[tuple[int, int]]:
    """Yield first and last line of each function; in the house's format both stand in column one."""
    start = 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.endswith("{") and line[:1].isalpha():
            start = number
        elif line.startswith("}") and start:
            yield start, number
            start = 0


def test_c_functions_fit_a_screen() -> None:
    long = [(path, a) for path, text in NATIVE.items() for a, b in c_functions(text) if b - a > C_FUNCTION_LINES]
    assert not long


def test_only_the_command_line_prints() -> None:
    calls = [(path, node.func) for path, tree in SDK.items() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    printing = [(path, f.lineno) for path, f in calls if isinstance(f, ast.Name) and f.id == "print"]
    assert not [each for each in printing if "cli" not in each[0].parts], "logging, not print"


def test_modules_open_with_their_essay() -> None:
    assert not [path for path, tree in SDK.items() if not ast.get_docstring(tree)]


def test_c_neither_prints_nor_exits() -> None:
    assert not [path for path, text in NATIVE.items() if C_VOICE.search(C_COMMENT_OR_TEXT.sub("", text))]


def test_headers_are_guarded() -> None:
    assert not [path for path, text in NATIVE.items() if path.suffix == ".h" and "\n#pragma once\n" not in text]
