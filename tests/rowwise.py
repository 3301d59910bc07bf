# SPDX-License-Identifier: Apache-2.0
"""Models whose prompts are computed in the rowwise class with smoothing and outlier columns that a test knows.

Calibration finds such scales from text. Here they are drawn, the same for a model of the same sizes on every machine:
linear inputs with none to three outlier columns, the others smoothed by factors of 1/4 to 4. The scales of the weights'
rows follow from them by the definition of the class, from the file itself.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import gguf
import numpy as np
from numpy.typing import NDArray

from smepilot.arch import ModelConfig
from smepilot.plan import RowwiseFacts, linear_inputs
from smepilot.runtime import loader
from smepilot.runtime.runner import Runner
from smepilot.runtime.tiers import usable_tiers

Vector = NDArray[np.float32]
FLOAT_FORMATS = ("F32", "F16", "BF16")


class Smoothing(NamedTuple):
    """What columns of weights and of activations are multiplied by, 0 at the outliers."""

    s: Vector
    u: Vector
    outliers: tuple[int, ...]


class Facts(dict[str, RowwiseFacts]):
    """Facts by parameter, and the arrays that they point into."""

    def __init__(self) -> None:
        super().__init__()
        self.arrays: list[Vector] = []

    def address(self, array: Vector) -> int:
        """Keeps an array."""
        self.arrays.append(np.ascontiguousarray(array))
        return self.arrays[-1].ctypes.data


def smoothing(config: ModelConfig) -> dict[str, Smoothing]:
    """By parameter; those that read the same input share it."""
    columns = {"qkv": config.d_model, "o": config.q_size, "gate_up": config.d_model, "down": config.d_ff}
    drawn = {}
    for i, (name, readers) in enumerate(linear_inputs(config).items()):
        random = np.random.default_rng(i)
        s = random.uniform(0.25, 4, columns[name.rpartition(".")[2]]).astype(np.float32)
        outliers = np.sort(random.permutation(len(s))[: i % 4])
        with np.errstate(divide="ignore"):
            u = np.float32(1) / s
        s[outliers] = u[outliers] = 0
        drawn |= dict.fromkeys(readers, Smoothing(s, u, tuple(outliers.tolist())))
    return drawn


def facts(model: loader.Model) -> Facts:
    """The rowwise form of all quantised matrices of the blocks."""
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(model.source.path).tensors}
    orders = {parameter.name: parameter.order() for parameter in loader.parameters(model.config) if parameter.rows}
    made = Facts()
    for name, (s, u, outliers) in smoothing(model.config).items():
        if model.formats[name] in FLOAT_FORMATS:
            continue
        rows = gguf.quants.dequantize(tensors[name].data, tensors[name].tensor_type).reshape(-1, len(s))
        amax = np.abs(rows[orders[name]] * s).max(axis=1).astype(np.float32)
        scale, inv = np.zeros((2, -(-len(amax) // 16) * 16), np.float32)
        scale[: len(amax)] = amax / np.float32(127)
        np.divide(np.float32(127), amax, out=inv[: len(amax)], where=amax > 0)
        made[name] = RowwiseFacts(*map(made.address, (inv, scale, s, u)), outliers)
    return made


def open_rowwise(path: Path, **options: Any) -> Runner:
    """A runner whose prompts are rowwise; the options are those of `Runner.open`."""
    model = loader.load(path, cache_dir=options.pop("cache_dir", None))
    model = replace(model, prompt_class="rowwise", rowwise=facts(model))
    ctx = options.pop("ctx", None) or model.config.context_length
    batch = min(options.pop("max_batch", 512), ctx)
    defaults = {"threads": None, "kv_dtype": "f16", "pages": None}
    return Runner(model, usable_tiers(), ctx=ctx, max_batch=batch, **{**defaults, **options})
