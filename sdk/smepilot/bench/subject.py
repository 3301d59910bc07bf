# SPDX-License-Identifier: Apache-2.0
"""SMEPilot as a benchmark subject: the same four calls as every peer (see peer_llama.py), in this process or served.

The runner is driven directly, below scheduler, sampler and tokenizer: what is timed is the forward step with its
logits. Random tokens, no sampling.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smepilot.bench.cases import Case, Phase

if TYPE_CHECKING:
    from smepilot.runtime.runner import Runner
    from smepilot.types import PromptClassChoice


class Subject:
    """One model in SMEPilot and at most one runner of it."""

    def __init__(self) -> None:
        """Opens nothing yet."""
        self._model: Path | None = None
        self._runner: Runner | None = None
        self._opened: tuple[int, int, int, PromptClassChoice] = (0, 0, 0, "auto")
        self._before: dict[str, int] = {}  # kernel calls until the latest sample
        self._case = Case("pp", 1)
        self._tokens: list[int] = []
        self._sequences: list[Any] = []

    def about(self) -> dict[str, Any]:
        """Name, version and the kernels' tier."""
        from importlib.metadata import version

        from smepilot.runtime.tiers import usable_tiers

        return {"engine": "smepilot", "version": version("smepilot"), "features": " ".join(usable_tiers())}

    def open(self, *, model: str) -> dict[str, Any]:
        """Names the model file; the runner is opened by `prepare`, which knows threads and context."""
        self._release()
        self._model = Path(model)
        return {}

    def prepare(
        self, *, phase: Phase, tokens: int, depth: int, sequences: int, seed: int, setting: dict[str, Any]
    ) -> None:
        """Fills the cache to `depth` and warms up; `measure` may then be called any number of times.

        Args:
            phase: "pp" or "tg".
            tokens: Prompt length or steps.
            depth: Positions filled beforehand, per sequence.
            sequences: Sequences in one step.
            seed: Of the random tokens.
            setting: threads, and the class of prompts where it is not the model's default.
        """
        case = Case(phase, tokens, depth, sequences)
        runner = self._open_runner(setting["threads"], case, setting.get("class", "auto"))
        self._case = case
        self._tokens = random.Random(seed).choices(range(runner.config.vocab_size), k=case.context)
        for sequence in self._sequences:
            sequence.free()
        self._sequences = [runner.sequence() for _ in range(sequences)]
        if depth:
            for sequence in self._sequences:
                runner.forward([(sequence, self._tokens[:depth])], logits="none")
        self.measure(limit=1.0)

    def _open_runner(self, threads: int, case: Case, prompts: PromptClassChoice) -> Runner:
        from smepilot.models.store import Store
        from smepilot.runtime.runner import Runner
        from smepilot.runtime.sequence import PAGE_TOKENS

        wanted = (threads, case.context, case.sequences, prompts)
        if self._runner is None or wanted != self._opened:
            assert self._model is not None, "open() comes first"
            self._release()
            self._runner = Runner.open(
                self._model,
                threads=threads,
                ctx=case.context,
                pages=case.sequences * -(-case.context // PAGE_TOKENS),
                cache_dir=Store().cache_dir(self._model),
                prompt_class=prompts,
            )
            self._opened = wanted
        return self._runner

    def measure(self, *, limit: float = 1e9) -> dict[str, float]:
        """Times the prepared case once.

        Args:
            limit: Seconds after which generation stops early (a prompt is always finished).

        Returns:
            tokens processed, over all sequences, and seconds.
        """
        from smepilot.runtime.sequence import Role

        runner, case = self._runner, self._case
        assert runner is not None, "prepare() comes first"
        for sequence in self._sequences:
            sequence.truncate(case.depth)
        todo = self._tokens[case.depth :]
        self._before = runner.counts()
        if case.phase == "pp":
            start = time.perf_counter()
            runner.forward([(sequence, todo) for sequence in self._sequences], logits="last", copy=False)
            return {"tokens": case.total, "seconds": time.perf_counter() - start}
        done, start, elapsed = 0, time.perf_counter(), 0.0
        while done < case.tokens and elapsed < limit:
            parts = [(sequence, todo[done : done + 1]) for sequence in self._sequences]
            runner.forward(parts, logits="last", role=Role.GENERATED, copy=False)
            done += 1
            elapsed = time.perf_counter() - start
        return {"tokens": done * case.sequences, "seconds": elapsed}

    def ran(self) -> str:
        """The precision class of the latest sample's linear layers, judged by the kernels that ran."""
        assert self._runner is not None, "prepare() comes first"
        ran = [name for name, count in self._runner.counts().items() if count > self._before.get(name, 0)]
        operands = {"rowwise": "_q8r_q8r_", "grouped": "_q8g32_"}  # the output layer is grouped in either class
        return next((name for name, mark in operands.items() if any(mark in kernel for kernel in ran)), "float")

    def peak_memory(self) -> int:
        """Largest resident set of this process so far, bytes."""
        from smepilot.bench.memory import peak_memory

        return peak_memory()

    def close(self) -> None:
        """Frees the runner."""
        self._release()

    def _release(self) -> None:
        if self._runner is not None:
            for sequence in self._sequences:
                sequence.free()
            self._sequences = []
            self._runner.close()
            self._runner = None
