# SPDX-License-Identifier: Apache-2.0
"""The documents are true: their examples run, help texts and tables are those of the code, links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.contract import documents
from tests.contract.documents import DOCUMENTS


def python_of(document: str) -> str:
    """Return the Python blocks of a document, as one program."""
    return "\n".join(block.text for block in documents.blocks(document) if block.language == "python" and block.runs)


every_document = pytest.mark.parametrize("document", DOCUMENTS)

# Commands that a reader types but a test does not: they fetch, build or test this very checkout.
OUTER = {"make", "git", "pip", "cd"}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of a reader who has pulled the default model and has a text file at hand."""
    home = tmp_path_factory.mktemp("reader")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    reader = {**os.environ, "PATH": path, "SMEPILOT_HOME": str(home), "HOME": str(home), "COLUMNS": "100"}
    run = subprocess.run(["smepilot", "pull", "smollm2:135m"], env=reader, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return reader


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the reader's folder, with the files that the examples name."""
    book = (ROOT / "tests" / "data" / "smollm2" / "ppl_botchan.txt").read_text()
    (tmp_path / "book.txt").write_text(book)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("document", [name for name in DOCUMENTS if python_of(name)])
def test_python_runs(document: str, environment: dict[str, str], folder: Path) -> None:
    """The Python blocks of a document are one program, read top to bottom."""
    program = folder / "example.py"
    program.write_text(python_of(document))
    command = [sys.executable, "-W", "error", str(program)]
    run = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
@every_document
def test_commands_run(document: str, environment: dict[str, str], folder: Path) -> None:
    for line in documents.commands(document):
        if line.split()[0] in OUTER:
            continue
        run = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, f"$ {line}\n{run.stdout}{run.stderr}"


@every_document
def test_make_verbs_exist(document: str) -> None:
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = (ROOT / document).read_text()
    assert set(re.findall(r"(?:^\$ .*|`)\bmake ([a-z-]+)", text, re.MULTILINE)) <= verbs


@every_document
def test_generated_parts_are_fresh(document: str) -> None:
    assert (ROOT / document).read_text() == documents.generated(document), "make format renews them"


@every_document
def test_links_lead_somewhere(document: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", (ROOT / document).read_text()):
        assert target.startswith("https://") or (ROOT / document).parent.joinpath(target).exists(), target
