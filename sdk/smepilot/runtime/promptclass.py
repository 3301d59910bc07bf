# SPDX-License-Identifier: Apache-2.0
"""The class in which a model computes prompts: settled when it is opened, then fixed.

A model has a default: rowwise where that costs at most one per cent of perplexity, else grouped. Which it is, and what
the rowwise class needs to know, is found out by calibration (calibrate.py) at the first open after the weights are
packed, kept beside them (rowwise.py), and mapped by later starts. Where it cannot be kept it is found out each time.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from smepilot.errors import InvalidParameterError, StoreError
from smepilot.paths import disk_errors, exclusive
from smepilot.runtime import rowwise
from smepilot.runtime.loader import LAYOUT_VERSION
from smepilot.runtime.packed import PackedFile, open_packed, pack_in_memory, source_key, write_packed
from smepilot.runtime.rowwise import Rowwise
from smepilot.weights.gguf import open_gguf

if TYPE_CHECKING:
    from smepilot.runtime.loader import Fraction, Model
    from smepilot.types import Calibration, PromptClass, PromptClassChoice

VERSION = "2"
"""Changes whenever the same model would be calibrated to other bits."""

PACKING = 0.2  # of the time that packing and calibration take together

log = logging.getLogger(__name__)


class Progress:
    """Packing and calibration as the two parts of one progress; silent where neither has to be done."""

    def __init__(self, report: Fraction | None, wanted: PromptClassChoice) -> None:
        self._report = report
        self._packing = 1.0 if wanted == "grouped" else PACKING
        self._begun = False

    def packing(self, done: float) -> None:
        """Packing is done to this fraction."""
        self._tell(self._packing * done)

    def calibrating(self, done: float) -> None:
        """Calibration is done to this fraction."""
        self._tell(self._packing + (1 - self._packing) * done)

    def end(self) -> None:
        """All is done."""
        if self._begun:
            self._tell(1.0)

    def _tell(self, done: float) -> None:
        self._begun = True
        if self._report is not None:
            self._report(done)


def settle(
    model: Model,
    wanted: PromptClassChoice,
    cache_dir: Path | None,
    tiers: Sequence[str],
    threads: int | None,
    on_progress: Fraction,
) -> Model:
    """The model with its prompt class, calibrating it first where that is not known.

    Args:
        model: A model as the loader made it, in the grouped class.
        wanted: A class, or "auto" for the model's default.
        cache_dir: Folder of the packed weights; None keeps nothing.
        tiers: Instruction-set tiers that calibration may use; like its threads, they change no bit of the result.
        threads: Its worker threads, None for one per physical core.
        on_progress: Called with the fraction done while calibrating.

    Raises:
        InvalidParameterError: The rowwise class is wanted of a model that does not have it.
    """
    name = model.source.path.name
    if not rowwise.readers(model.config, model.formats):
        if wanted == "rowwise":
            raise InvalidParameterError(
                f"{name}: prompt_class is 'rowwise', but no layer of this model is quantised; use 'auto' or 'grouped'"
            )
        return model
    if wanted == "grouped":
        return model

    def find() -> rowwise.Finding:
        from smepilot.runtime.calibrate import calibrate  # not needed by a start that finds its result

        return calibrate(model, cache_dir, tiers, threads, on_progress)

    prompts = _kept(model, cache_dir, find)
    found = prompts.calibration
    if wanted == "rowwise" and found.reason is not None:
        prompts.file.close()
        raise InvalidParameterError(f"{name}: prompt_class is 'rowwise', but {found.reason}; use 'auto' or 'grouped'")
    chosen: PromptClass = found.default if wanted == "auto" else wanted
    facts = prompts.facts if chosen == "rowwise" else {}
    return replace(model, prompt_class=chosen, rowwise=facts, prompts=prompts)


def peek(path: Path, cache_dir: Path) -> Calibration | None:
    """What was measured of the model file `path` when it was first opened; None where it has not been."""
    with open_gguf(path) as source:
        file = open_packed(_path(cache_dir), _key(source_key(source, LAYOUT_VERSION)))
    if file is None:
        return None
    with file, suppress(ValueError):  # whatever is wrong with it, the next start will say
        return rowwise.verdict(file.metadata)
    return None


def _known(model: Model, cache_dir: Path) -> Rowwise | None:
    """What is kept of an earlier calibration; None where there is nothing, or (with a warning) nothing sensible."""
    file = open_packed(_path(cache_dir), _key(model.key))
    if file is None:
        return None
    try:
        return _read(model, file)
    except ValueError as error:
        log.warning("%s: damaged (%s); calibrating again", file.path, error)
        file.close()
        with disk_errors(_path(cache_dir)):
            _path(cache_dir).unlink(missing_ok=True)
        return None


def _path(cache_dir: Path) -> Path:
    return cache_dir / "rowwise.safetensors"


def _key(weights: str) -> str:
    """What a calibration depends on: the packed weights' key, the texts and the way."""
    texts = [hashlib.sha256(text.read_bytes()).hexdigest() for text in rowwise.TEXTS]
    return hashlib.sha256("\n".join([weights, VERSION, *texts]).encode()).hexdigest()


def _kept(model: Model, cache_dir: Path | None, find: Callable[[], rowwise.Finding]) -> Rowwise:
    """From the cache, or found out now and kept there: by one process at a time, the others wait for its result."""
    found: rowwise.Finding | None = None
    if cache_dir is not None:
        try:
            kept = _known(model, cache_dir)
            if kept is not None:
                return kept
            with exclusive(cache_dir / "calibration.lock"):
                kept = _known(model, cache_dir)
                if kept is not None:
                    return kept
                found = find()
                return _read(model, write_packed(_path(cache_dir), _key(model.key), found.metadata, found.items()))
        except StoreError as error:
            log.warning("%s; every start will calibrate again", error)
    found = found or find()
    return _read(model, pack_in_memory(found.metadata, found.items()))


def _read(model: Model, file: PackedFile) -> Rowwise:
    return rowwise.read(file, model.config, model.weights)
