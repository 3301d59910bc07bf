# SPDX-License-Identifier: Apache-2.0
"""Calibration: what the rowwise class needs to know of a model, and what it costs, measured on built-in text.

A text is run in the grouped class while the size of each column of each linear layer's input is kept. From these and
the weights come smoothing scales, outlier columns and row scales (smooth.py). That text and a second one are run in
either class, to see how well both predict them: together they have some 1,600 tokens, for which the loss is known to
about 0.4 per cent.

Both texts are ours (runtime/data): English for the most part, with code, tables, numbers and a few other languages.
Their tokens are the same everywhere and so is all arithmetic, so what is found has the same bytes whoever finds it,
and two machines' answers stay equal.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from smepilot import _native
from smepilot.errors import NumericError, TokenizerError
from smepilot.plan import linear_inputs
from smepilot.runtime import rowwise, smooth
from smepilot.runtime.packed import pack_in_memory
from smepilot.runtime.runner import Runner
from smepilot.text.tokenizer import from_metadata

if TYPE_CHECKING:
    from smepilot.runtime.loader import Fraction, Model

TOKENS = 896  # most of either text; SmolLM2's tokenizer makes 768 and 896 of them
STEP = 64  # tokens of one native step: logits of each position are wanted, and Ctrl-C is heard between steps

Part = tuple[float, float]
"""Where a piece of work begins and ends in the whole, as fractions."""

log = logging.getLogger(__name__)


class _NoRowwiseError(Exception):
    """Why a model has no rowwise form."""


def calibrate(
    model: Model, cache_dir: Path | None, tiers: Sequence[str], threads: int | None, on_progress: Fraction
) -> rowwise.Finding:
    """Finds out what the rowwise class needs to know of a model, and what it costs.

    Args:
        model: A model in the grouped class.
        cache_dir: Where its tokenizer is kept, None for nowhere.
        tiers: Instruction-set tiers that may be used.
        threads: Worker threads, None for one per physical core.
        on_progress: Called with the fraction done.
    """
    run = _Run(model, cache_dir, tiers, threads, on_progress)
    try:
        return run.unmeasured() if rowwise.SYNTHETIC in model.source.metadata else run.measured()
    except _NoRowwiseError as reason:
        log.warning("%s: prompts stay in the grouped class: %s", model.source.path, reason)
        return rowwise.Finding({}, reason=str(reason))


class _Run:
    """One calibration of one model."""

    def __init__(
        self,
        model: Model,
        cache_dir: Path | None,
        tiers: Sequence[str],
        threads: int | None,
        on_progress: Fraction,
    ) -> None:
        self._model = model
        self._cache_dir = cache_dir
        self._tiers = tiers
        self._threads = threads
        self._on_progress = on_progress
        self._readers = rowwise.readers(model.config, model.formats)
        self._inputs = linear_inputs(model.config)

    def unmeasured(self) -> rowwise.Finding:
        """Scales of one, for models of random weights."""
        return rowwise.Finding(
            self._scaled({name: smooth.unit(self._columns(name)) for name in self._readers}, (0.0, 1.0))
        )

    def measured(self) -> rowwise.Finding:
        """Smoothing from the first text, likelihoods of both."""
        first, second = self._texts()
        sizes = {name: np.zeros(self._columns(name), np.float32) for name in self._inputs}
        grouped = self._likelihoods(self._model, first, (0.0, 0.25), sizes)
        grouped += self._likelihoods(self._model, second, (0.25, 0.5))
        kept = self._scaled(self._smoothings(sizes), (0.55, 0.6))
        with self._in_rowwise(kept) as model:
            lossy = self._likelihoods(model, first, (0.6, 0.8)) + self._likelihoods(model, second, (0.8, 1.0))
        return rowwise.Finding(kept, _nats(grouped), _nats(lossy))

    # ---- the parts

    def _texts(self) -> tuple[list[int], list[int]]:
        """The tokens of both texts."""
        config = self._model.config
        most = min(TOKENS, config.context_length)
        try:
            tokenizer = from_metadata(self._model.source.metadata, cache=self._cache_dir)
        except TokenizerError as error:
            raise _NoRowwiseError(f"the built-in text has no tokens ({error})") from error
        first, second = (tokenizer.encode(path.read_text(encoding="utf-8"))[:most] for path in rowwise.TEXTS)
        if min(len(first), len(second)) < 2 or max(*first, *second) >= config.vocab_size:
            raise _NoRowwiseError("the built-in text has no tokens in this vocabulary")
        return first, second

    def _smoothings(self, sizes: Mapping[str, NDArray[np.float32]]) -> dict[str, smooth.Smoothing]:
        found = {}
        with ThreadPoolExecutor(max_workers=2) as threads:
            for name in self._readers:
                weights = smooth.column_sizes(self._matrices(name), threads)
                try:
                    found[name] = smooth.smoothing(sizes[name], weights)
                except NumericError as error:
                    raise _NoRowwiseError(f"{name} cannot be smoothed: {error}") from error
        return found

    def _scaled(self, smoothings: Mapping[str, smooth.Smoothing], part: Part) -> rowwise.Arrays:
        """The tensors to keep: smoothing of the inputs, and the scales of the rows that come with it."""
        scales = {}
        with ThreadPoolExecutor(max_workers=2) as threads:
            for i, (name, weights) in enumerate(self._readers.items()):
                if self._columns(name) > rowwise.MOST_COLUMNS:
                    raise _NoRowwiseError(f"{name} has more than {rowwise.MOST_COLUMNS} columns")
                for weight, matrix in zip(weights, self._matrices(name), strict=True):
                    try:
                        scales[weight] = smooth.row_scales(matrix, smoothings[name].s, threads)
                    except NumericError as error:
                        raise _NoRowwiseError(f"{weight} has no rowwise form: {error}") from error
                self._report(part, i / len(self._readers))
        return rowwise.arrays(smoothings, scales)

    @contextmanager
    def _in_rowwise(self, kept: rowwise.Arrays) -> Iterator[Model]:
        """The model with prompts in the rowwise class, as it would be opened."""
        with pack_in_memory({}, rowwise.Finding(kept).items()) as file:
            facts = rowwise.read(file, self._model.config, self._model.weights).facts
            yield replace(self._model, prompt_class="rowwise", rowwise=facts)

    def _likelihoods(
        self, model: Model, tokens: Sequence[int], part: Part, sizes: Mapping[str, smooth.Vector] | None = None
    ) -> list[float]:
        """Log-likelihoods, in nats, of a text's tokens but the first, computed as a prompt.

        Where `sizes` are given, they are raised to the largest size of each column of each linear input.
        """
        terms: list[float] = []
        try:
            with self._runner(model, sizes or {}) as runner:
                handle = runner.sequence()
                for at in range(0, len(tokens), STEP):
                    rows = runner.forward([(handle, tokens[at : at + STEP])], "all", copy=False)
                    targets = tokens[at + 1 : at + 1 + STEP]
                    terms += [
                        _native.log_softmax_at(row, target, tiers=self._tiers)
                        for row, target in zip(rows, targets, strict=False)
                    ]
                    self._report(part, at / len(tokens))
        except NumericError as error:
            raise _NoRowwiseError(f"its logits of the built-in text are no numbers ({error})") from error
        return terms

    # ---- what they need

    @contextmanager
    def _runner(self, model: Model, sizes: Mapping[str, smooth.Vector]) -> Iterator[Runner]:
        """A runner that leaves the model open; given arrays for them, it keeps the sizes of linear inputs."""
        context = min(model.config.context_length, TOKENS)
        runner = Runner(
            model,
            self._tiers,
            threads=self._threads,
            ctx=context,
            kv_dtype="f16",
            max_batch=min(STEP, context),
            pages=None,
            lent=True,
            peaks={name: each.ctypes.data for name, each in sizes.items()},
        )
        try:
            yield runner
        finally:
            runner.close()

    def _matrices(self, name: str) -> list[smooth.Matrix]:
        packed, weights = self._model.packed, self._model.weights
        return [smooth.Matrix(*weights[weight][1:], packed[weight]) for weight in self._readers[name]]

    def _columns(self, name: str) -> int:
        return self._model.weights[self._inputs[name][0]][2]

    def _report(self, part: Part, done: float) -> None:
        begin, end = part
        self._on_progress(begin + (end - begin) * done)


def _nats(terms: Sequence[float]) -> float:
    """Mean negative log-likelihood; the sum is exact."""
    return -math.fsum(terms) / len(terms)
