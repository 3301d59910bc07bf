# SPDX-License-Identifier: Apache-2.0
"""SMEPilot against llama.cpp on the same file, paired.

Each engine lives in a process of its own (worker.py) and is asked in turn, ours theirs ours theirs, so both meet the
same machine; the verdict is the median of the ratios of neighbouring samples. Before that each engine is given its
best setting for the case: threads for ours; threads, flash attention, batch size and cache kind for llama.cpp.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from smepilot.bench import startup
from smepilot.bench.cases import Case
from smepilot.bench.neighbour import busy_neighbour
from smepilot.bench.samples import Summary, pairwise
from smepilot.bench.suite import Row, Subject, our_setting, prepare, sample
from smepilot.bench.worker import Worker
from smepilot.types import PromptClassChoice

_HERE = Path(__file__).parent
PATIENCE = 20.0  # seconds after which a sample of generation is cut short
MEMORY_CASE = Case("tg", 64, depth=1984)  # a prompt and an answer that fill a context of 2048
FIRST_TOKEN, PEAK_MEMORY = "first token", "peak memory"

Setting = dict[str, Any]


@dataclass(frozen=True)
class Duel:
    """One test on both engines; `quiet` is ours without the neighbour, where the test has one."""

    ours: Row
    theirs: Row
    quiet: Row | None = None

    @property
    def ratio(self) -> Summary:
        """Ours over theirs, of neighbouring samples."""
        return pairwise(self.ours.samples, self.theirs.samples)

    @property
    def kept(self) -> float | None:
        """What is left of our quiet rate beside a busy neighbour."""
        return None if self.quiet is None else self.ours.summary.median / self.quiet.summary.median


def our_settings(cores: int, prompt_class: PromptClassChoice = "auto") -> list[Setting]:
    """Ours to choose from: all cores, or one."""
    return [our_setting(threads, prompt_class) for threads in sorted({cores, 1}, reverse=True)]


def llama_settings(case: Case, cores: int) -> list[Setting]:
    """llama.cpp's to choose from, with all cores; the best is tried with one core as well."""
    batches = [512, 2048] if case.phase == "pp" and case.tokens > 512 else [512]
    return [
        {"threads": cores, "flash": flash, "batch": batch, "unified": unified}
        for flash in (True, False)
        for batch in batches
        for unified in ((False, True) if case.sequences > 1 else (False,))
    ]


def best_setting(subject: Subject, case: Case, settings: Sequence[Setting]) -> Setting:
    """The setting whose one sample is fastest; leaves `subject` prepared with another, perhaps."""

    def rate(setting: Setting) -> float:
        prepare(subject, case, setting)
        return sample(subject, PATIENCE)

    return max(settings, key=rate)


class Versus:
    """Both engines with one model; a context manager that ends their processes."""

    def __init__(
        self,
        model: Path,
        *,
        cores: int,
        pairs: int = 5,
        peer_python: str | None = None,
        prompt_class: PromptClassChoice = "auto",
        peer: Path = _HERE / "peer_llama.py",
        on_event: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Starts both processes and loads the model in each.

        Args:
            model: A GGUF file that both can read.
            cores: Threads of the many-threaded settings.
            pairs: Samples of each engine per test.
            peer_python: Interpreter that has llama-cpp-python; None for this one.
            prompt_class: Our class of prompts; "auto" is the model's default.
            peer: File of the subject that is measured against (serve.py).
            on_event: Told what is being measured.

        Raises:
            RuntimeFault: A process cannot be started or an engine refuses the model.
        """
        self.prompt_class: PromptClassChoice = prompt_class
        self.model, self.cores, self.pairs, self.say = model, cores, pairs, on_event
        self.peer_python, self._peer = peer_python or sys.executable, peer
        with ExitStack() as opened:
            self.ours = opened.enter_context(_our_worker())
            self.theirs = opened.enter_context(self._their_worker())
            self.about_peer = self.theirs.about()
            self.ours.open(model=str(model))
            self.theirs.open(model=str(model))
            self._opened = opened.pop_all()

    def __enter__(self) -> Versus:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends both processes."""
        self._opened.close()

    def _their_worker(self) -> Worker:
        return Worker(self._peer, python=self.peer_python)

    def _llama_setting(self, case: Case) -> Setting:
        return self._with_threads_chosen(case, best_setting(self.theirs, case, llama_settings(case, self.cores)))

    def _with_threads_chosen(self, case: Case, setting: Setting) -> Setting:
        return best_setting(self.theirs, case, [{**setting, "threads": n} for n in sorted({1, self.cores})])

    def duel(self, case: Case) -> Duel:
        """Times one case on the quiet machine."""
        self.say(f"{self.model.name} {case.name}: looking for each engine's best setting")
        ours = best_setting(self.ours, case, our_settings(self.cores, self.prompt_class))
        theirs = self._llama_setting(case)
        return self._pairs(case, case.name, ours, theirs)

    def busy_duel(self, case: Case, quiet: Duel | None = None) -> Duel:
        """Times one case beside a process that keeps one core busy.

        Ours keeps the setting that was best on the quiet machine: nobody retunes an app when a neighbour wakes up.
        llama.cpp chooses its threads anew, for with all of them it may all but stop.
        """
        quiet = quiet or self.duel(case)
        with busy_neighbour():
            theirs = self._with_threads_chosen(case, quiet.theirs.setting)
            duel = self._pairs(case, f"{case.name}, busy neighbour", quiet.ours.setting, theirs)
        return Duel(duel.ours, duel.theirs, quiet.ours)

    def _pairs(self, case: Case, test: str, ours: Setting, theirs: Setting) -> Duel:
        self.say(f"{self.model.name} {test}: {self.pairs} pairs")
        prepare(self.ours, case, ours)
        prepare(self.theirs, case, theirs)
        rates = [(sample(self.ours, PATIENCE), sample(self.theirs, PATIENCE)) for _ in range(self.pairs)]
        a, b = zip(*rates, strict=True)
        mine = replace(self._row("smepilot", test, ours, a), extra={"class": self.ours.ran()})
        return Duel(mine, self._row("llama.cpp", test, theirs, b))

    def _row(self, engine: str, test: str, setting: Setting, samples: Sequence[float], unit: str = "t/s") -> Row:
        return Row(engine, self.model.name, test, setting, tuple(samples), unit)

    def startup(self) -> Duel:
        """Times fresh processes from their start to the first token, warm file cache."""
        self.say(f"{self.model.name} {FIRST_TOKEN}: {self.pairs} pairs of processes")
        settings = [{"threads": n, "flash": flash} for n in sorted({1, self.cores}) for flash in (True, False)]

        def ours() -> float:
            return startup.ours(sys.executable, self.model, self.prompt_class)

        def theirs(setting: Setting) -> float:
            return startup.llama(self.peer_python, self.model, setting)

        ours()  # packs, where that has not been done
        theirs(settings[0])
        best = min(settings, key=theirs)
        a, b = zip(*[(ours(), theirs(best)) for _ in range(self.pairs)], strict=True)
        return Duel(self._row("smepilot", FIRST_TOKEN, {}, a, "s"), self._row("llama.cpp", FIRST_TOKEN, best, b, "s"))

    def memory(self) -> Duel:
        """Peak resident memory of fresh processes after a prompt and an answer that fill a context of 2048."""
        self.say(f"{self.model.name} {PEAK_MEMORY}")
        setting = our_setting(self.cores, self.prompt_class)
        theirs = [{"threads": self.cores, "flash": flash, "batch": 512, "unified": False} for flash in (True, False)]
        ours = self._peak(_our_worker(), setting)
        peak, best = min((self._peak(self._their_worker(), choice), i) for i, choice in enumerate(theirs))
        return Duel(
            self._row("smepilot", PEAK_MEMORY, setting, [ours], "MiB"),
            self._row("llama.cpp", PEAK_MEMORY, theirs[best], [peak], "MiB"),
        )

    def _peak(self, worker: Worker, setting: Setting) -> float:
        with worker:
            worker.open(model=str(self.model))
            prepare(worker, MEMORY_CASE, setting)
            sample(worker)
            return float(worker.peak_memory()) / (1 << 20)


def _our_worker() -> Worker:
    return Worker(_HERE / "subject.py")
