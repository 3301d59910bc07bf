# SPDX-License-Identifier: Apache-2.0
"""How results look: rich in a terminal, plain text when piped, JSON where asked for.

rich is imported only where it draws something, for it costs more than the rest of a command.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress

    from smepilot.types import Usage


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on standard output; columns are aligned, and piped ones have no frame and no colour."""
    if sys.stdout.isatty():
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table

        drawing = Table(*header, box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for row in rows:
            drawing.add_row(*row)
        Console().print(drawing)
        return
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def facts(pairs: Mapping[str, str], file: TextIO | None = None) -> None:
    """Names and values, one pair a line; names are dim in a terminal."""
    file = file or sys.stdout
    width = max(map(len, pairs), default=0)
    dim, plain = ("\x1b[2m", "\x1b[0m") if file.isatty() else ("", "")
    for name, value in pairs.items():
        print(f"{dim}{name:<{width}}{plain}  {value}", file=file)


def plain(value: object) -> str:
    """A parameter or fact in words: nothing and empty collections are "none", sequences are listed."""
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None or value == {} else str(value)


def megabytes(count: int | None) -> str:
    """A size in units of 10**6 bytes."""
    return "not known" if count is None else f"{count / 1e6:,.0f} MB"


def usage_facts(usage: Usage) -> dict[str, str]:
    """The usage of a request in words."""
    seconds = usage.seconds
    split = ("template", "tokenize", "queue", "prefill", "decode", "detokenize", "total")
    first, each = usage.time_to_first_token, usage.time_per_output_token
    return {
        "prompt": f"{usage.prompt_tokens} tokens, {usage.cached_tokens} of them cached"
        f"{_rate(usage.prompt_tokens_per_second)}",
        "answer": f"{usage.completion_tokens} tokens{_rate(usage.generation_tokens_per_second)}",
        "first token": "none" if first is None else f"after {first:.3f} s",
        "each further": "none" if each is None else f"{each * 1e3:.2f} ms",
        "time": ", ".join(f"{name} {getattr(seconds, name):.4f} s" for name in split),
        "peak memory": megabytes(usage.peak_memory_bytes),
    }


def _rate(rate: float | None) -> str:
    return "" if rate is None else f", {rate:,.1f} tokens/s"


class Bar:
    """A progress bar on standard error while something takes long; nothing at all where that is no terminal.

    It appears with the first report, so that what is quick leaves no trace.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._progress: Progress | None = None

    def fraction(self, done: float) -> None:
        """Reports the fraction done, 0 to 1."""
        self.amount(self._text, int(done * 1000), 1000)

    def amount(self, text: str, done: int, total: int, note: str = "") -> None:
        """Reports `done` of `total`, with the name of the stage and a note behind the bar."""
        if not sys.stderr.isatty():
            return
        if self._progress is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TaskProgressColumn(),
                TextColumn("{task.fields[note]}"),
            )
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._progress.add_task(text, total=total, note=note)
            self._progress.start()
        self._progress.update(self._task, description=text, completed=done, total=total, note=note)

    def __enter__(self) -> Self:
        """The bar itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Takes the bar away."""
        if self._progress is not None:
            self._progress.stop()
