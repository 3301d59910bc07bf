# SPDX-License-Identifier: Apache-2.0
"""Runs cases on one engine: fill the cache, warm up, time r samples; the same loop for us and for every peer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from smepilot.bench.cases import Case, Phase
from smepilot.bench.samples import Summary, summarise
from smepilot.types import PromptClassChoice

SEED = 20_260_101  # of the random tokens: every engine sees the same ones


class Subject(Protocol):
    """An engine that can be timed, here or behind a pipe (worker.py)."""

    def open(self, *, model: str) -> dict[str, Any]:
        """Loads a model file."""

    def prepare(
        self, *, phase: Phase, tokens: int, depth: int, sequences: int, seed: int, setting: dict[str, Any]
    ) -> None:
        """Fills the cache to `depth` and warms up."""

    def measure(self, *, limit: float = ...) -> dict[str, float]:
        """Times the prepared case once: tokens and seconds."""

    def peak_memory(self) -> int:
        """Largest resident set so far, bytes."""


@dataclass(frozen=True)
class Row:
    """The samples of one test on one engine with one setting.

    Attributes:
        engine: "smepilot" or a peer's name.
        model: The file's name.
        test: What was measured: a case's name, or a word such as "first token".
        setting: How: threads and what else the engine takes.
        samples: One value per sample, in order.
        unit: Of the samples: "t/s", "s" or "MiB".
        extra: Further figures, e.g. the fraction of the roofline.
    """

    engine: str
    model: str
    test: str
    setting: dict[str, Any]
    samples: tuple[float, ...]
    unit: str = "t/s"
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def summary(self) -> Summary:
        """Of the samples."""
        return summarise(self.samples)

    @property
    def settings(self) -> str:
        """The setting as text: `threads=2 flash=True`."""
        return " ".join(f"{key}={value}" for key, value in self.setting.items())


def our_setting(threads: int, prompt_class: PromptClassChoice = "auto") -> dict[str, Any]:
    """A setting of this engine; the class of prompts is named where it is not left to the model."""
    return {"threads": threads} | ({} if prompt_class == "auto" else {"class": prompt_class})


def prepare(subject: Subject, case: Case, setting: dict[str, Any]) -> None:
    """Readies `subject` for samples of `case`."""
    subject.prepare(
        phase=case.phase,
        tokens=case.tokens,
        depth=case.depth,
        sequences=case.sequences,
        seed=SEED,
        setting=setting,
    )


def sample(subject: Subject, limit: float = 1e9) -> float:
    """One sample of the prepared case, tokens per second."""
    taken = subject.measure(limit=limit)
    return taken["tokens"] / taken["seconds"]


def run(
    model: Path,
    cases: Sequence[Case],
    *,
    threads: Iterable[int],
    repeats: int = 5,
    prompt_class: PromptClassChoice = "auto",
    on_case: Callable[[Case, int], None] | None = None,
) -> Iterator[Row]:
    """Times every case with every thread count on this engine, in this process.

    Args:
        model: A GGUF file.
        cases: What to time.
        threads: Thread counts.
        repeats: Samples of each, after one warm-up.
        prompt_class: The class of prompts; "auto" is the model's default.
        on_case: Called before each case with the case and its thread count.

    Yields:
        One row per thread count and case; `extra` has the fraction of the roofline and the precision class that ran.
    """
    from smepilot.bench import roofline
    from smepilot.bench.subject import Subject as Engine

    engine, cost = Engine(), roofline.work(model)
    engine.open(model=str(model))
    try:
        for count in threads:
            machine = roofline.measure(count)
            for case in cases:
                if on_case is not None:
                    on_case(case, count)
                setting = our_setting(count, prompt_class)
                prepare(engine, case, setting)
                rates = tuple(sample(engine) for _ in range(repeats))
                share = roofline.fraction(case, summarise(rates).median, cost, machine)
                yield Row(
                    "smepilot", model.name, case.name, setting, rates, extra={"roofline": share, "class": engine.ran()}
                )
    finally:
        engine.close()
