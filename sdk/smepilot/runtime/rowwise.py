# SPDX-License-Identifier: Apache-2.0
"""The rowwise form of a model as it is kept: a second packed file beside the weights.

    <input>          float32 [2][k]     s and u of a linear layer's input, e.g. layers.0.gate_up
    <input>.outliers int32 [n]          its outlier columns, ascending; absent where there are none
    <weight>         float32 [2][rows]  inv and scale of a matrix's rows, padded to whole panels

Beside them, as metadata: how well the model predicts built-in text in either class, in nats per token, or why it has
no rowwise form; and the digest of all of the above, the class key: keys and values that a prompt left behind are
as good as new only where this is the same. Everything is the same bits on every machine.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smepilot.arch import ModelConfig
from smepilot.plan import RowwiseFacts, linear_inputs
from smepilot.plan.lower import Linear
from smepilot.plan.plan import FLOAT_FORMATS
from smepilot.runtime.packed import Item, PackedFile
from smepilot.runtime.smooth import PANEL_ROWS, Smoothing
from smepilot.types import Calibration

BUDGET = 0.00995033085316808
"""Most nats per token that the rowwise class may lose to be the default: ln 1.01, one per cent of perplexity."""
SYNTHETIC = "smepilot.synthetic"
"""Metadata key of models made of random weights: they are not measured, their smoothing scales are one."""
MOST_OUTLIERS = 64
MOST_COLUMNS = 131072
"""An int32 holds the sum of so many products of two int8."""

Arrays = dict[str, NDArray[np.float32] | NDArray[np.int32]]


TEXTS = tuple(Path(__file__).with_name("data") / name for name in ("first.txt", "second.txt"))
"""Smoothing comes from the first text; the loss is measured on both."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What calibration finds, on its way to a file.

    Attributes:
        tensors: What is kept, by name (see above); empty where there is no rowwise form.
        grouped, rowwise: Nats per token of built-in text in either class; None where they were not measured.
        reason: Why there is no rowwise form; None where there is one.
    """

    tensors: Arrays
    grouped: float | None = None
    rowwise: float | None = None
    reason: str | None = None

    @property
    def metadata(self) -> dict[str, str]:
        """What is kept beside the tensors. The repr of a float is exact."""
        digest = hashlib.sha256()
        for name, array in self.tensors.items():
            digest.update(f"{name}:{array.nbytes}\n".encode() + _bytes(array))
        numbers = {"grouped": self.grouped, "rowwise": self.rowwise}
        said = {name: repr(value) for name, value in numbers.items() if value is not None}
        return {"class_key": digest.hexdigest()} | said | ({} if self.reason is None else {"reason": self.reason})

    def items(self) -> list[Item]:
        """The tensors as `write_packed` takes them, little endian."""

        def fill(data: bytes, out: memoryview) -> None:
            out[:] = data

        return [(name, array.nbytes, partial(fill, _bytes(array))) for name, array in self.tensors.items()]


@dataclass(frozen=True, slots=True)
class Rowwise:
    """What a model needs for the rowwise class.

    Attributes:
        facts: By parameter, its rowwise form; empty where the model has none.
        key: Digest of `facts`.
        calibration: What was measured.
        file: What holds the memory behind `facts`.
    """

    facts: Mapping[str, RowwiseFacts]
    key: str
    calibration: Calibration
    file: PackedFile


def verdict(about: Mapping[str, str]) -> Calibration:
    """What was measured, from a file's metadata. Scales of one were never measured: they are there for speed.

    Raises:
        ValueError: it is no calibration's metadata.
    """
    if "reason" in about:
        return Calibration("grouped", None, about["reason"])
    if "grouped" not in about or "rowwise" not in about:
        return Calibration("rowwise", None, None)
    lost = float(about["rowwise"]) - float(about["grouped"])
    if not math.isfinite(lost):
        raise ValueError(f"the loss is {lost}")
    return Calibration("rowwise" if lost <= BUDGET else "grouped", math.expm1(lost), None)


def readers(config: ModelConfig, formats: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """By linear input the matrices that read it and may have a rowwise form: the quantised ones."""
    every = linear_inputs(config).items()
    some = {name: tuple(w for w in weights if formats[w] not in FLOAT_FORMATS) for name, weights in every}
    return {name: weights for name, weights in some.items() if weights}


def arrays(smoothings: Mapping[str, Smoothing], scales: Mapping[str, NDArray[np.float32]]) -> Arrays:
    """The tensors to keep, from the smoothing of each input and the scales of each matrix."""
    kept: Arrays = {}
    for name, each in smoothings.items():
        kept[name] = np.stack([each.s, each.u])
        if each.outliers:
            kept[_outliers(name)] = np.array(each.outliers, np.int32)
    return {**kept, **scales}


def read(file: PackedFile, config: ModelConfig, weights: Mapping[str, Linear]) -> Rowwise:
    """What a file holds for a model of these packed weights.

    Raises:
        ValueError: it is no calibration of this model.
    """
    found = verdict(file.metadata)
    facts = {} if found.reason is not None else dict(_facts(file, config, weights))
    return Rowwise(facts, file.metadata.get("class_key", ""), found, file)


def _facts(file: PackedFile, config: ModelConfig, weights: Mapping[str, Linear]) -> Iterator[tuple[str, RowwiseFacts]]:
    formats = {name: dtype for name, (_, dtype, _, _) in weights.items()}
    for name, matrices in readers(config, formats).items():
        k = weights[matrices[0]][2]
        outliers: tuple[int, ...] = ()
        if _outliers(name) in file:
            outliers = tuple(np.frombuffer(file[_outliers(name)], "<i4").tolist())
        if len(outliers) > MOST_OUTLIERS or not all(a < b for a, b in pairwise((-1, *outliers, k))):
            raise ValueError(f"the outlier columns of {name} are {outliers}")
        s = _address(file, name, k)
        for matrix in matrices:
            padded = -(-weights[matrix][3] // PANEL_ROWS) * PANEL_ROWS
            inv = _address(file, matrix, padded)
            yield matrix, RowwiseFacts(inv, inv + 4 * padded, s, s + 4 * k, outliers)


def _address(file: PackedFile, name: str, count: int) -> int:
    """Where float32 [2][count] is."""
    if name not in file or len(file[name]) != 8 * count:
        raise ValueError(f"{name} is missing or not 2 * {count} numbers")
    return file.address(name)


def _outliers(name: str) -> str:
    return f"{name}.outliers"


def _bytes(array: NDArray[np.float32] | NDArray[np.int32]) -> bytes:
    return array.astype(array.dtype.newbyteorder("<")).tobytes()
