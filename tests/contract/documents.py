# SPDX-License-Identifier: Apache-2.0
"""The Markdown documents as data: their code blocks, and the parts that are generated.

A comment on the line before a block says what is special about it:

* ``<!-- not run: reason -->``: the block is shown, not executed;
* ``<!-- help: smepilot run -->``: the block is what ``smepilot run --help`` prints.

Between ``<!-- kernels -->`` and ``<!-- /kernels -->`` stands the table of kernels, made from their lists.
``python -m tests.contract.documents`` (part of ``make format``) rewrites the generated parts; a test compares them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.contract import kernels

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENTS = ("README.md", "sdk/README.md", "native/README.md", "tests/README.md", "tests/bench/README.md")

BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
TABLE = re.compile(r"(?<=<!-- kernels -->\n).*?(?=<!-- /kernels -->)", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text and the note before it, if any."""

    language: str
    text: str
    note: str

    @property
    def runs(self) -> bool:
        """Whether the block is executed by the tests."""
        return not self.note.startswith(("not run:", "help:"))


def blocks(document: str) -> list[Block]:
    """Return the fenced blocks of a document, in order."""
    text = (ROOT / document).read_text()
    return [Block(match["language"], match["text"], match["note"] or "") for match in BLOCK.finditer(text)]


def commands(document: str) -> list[str]:
    """Return the lines that a reader is told to type: those after ``$ `` in console blocks that are run."""
    shown = [block for block in blocks(document) if block.language == "console" and block.runs]
    return [line[2:] for block in shown for line in block.text.splitlines() if line.startswith("$ ")]


def help_text(command: str) -> str:
    """Return what ``command --help`` prints on a plain terminal of 100 columns."""
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    words = [sys.executable, "-m", *command.split(), "--help"]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout


def generated(document: str) -> str:
    """Return the document with its generated parts made anew."""

    def renew(match: re.Match[str]) -> str:
        note = match["note"] or ""
        if not note.startswith("help: "):
            return match[0]
        return f"<!-- {note} -->\n```text\n{help_text(note.removeprefix('help: '))}```"

    text = BLOCK.sub(renew, (ROOT / document).read_text())
    return TABLE.sub(lambda _: f"\n{kernels.table()}\n", text)


if __name__ == "__main__":
    for name in DOCUMENTS:
        (ROOT / name).write_text(generated(name))
