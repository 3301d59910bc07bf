# SPDX-License-Identifier: Apache-2.0
"""An independent Llama in numpy, float64, straight from a GGUF file: what the engine's logits are compared with.

It shares nothing with the engine: the `gguf` package reads and dequantises, the rotation turns neighbouring pairs as
the file orders them (the engine reorders rows and turns halves), attention is one softmax over a whole matrix (the
engine merges blocks of 64 keys). Rounding of float32 is part of the definition in one place only: a rotary angle is
float32(position) * float32(inverse frequency), as in Hugging Face.

With `int8=True` the inputs of quantised matrices are rounded as the engine's `grouped` class does, to 127 steps per
32 values of one token. What then remains of the difference is float32 rounding and the few values that fall on the
other side of a step because of it. With `smoothing`, matrices that have one are computed as its `rowwise` class does:
both operands rounded to 127 steps per row, columns smoothed first, outlier columns left to floats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from tests import convert
from tests.rowwise import Smoothing

Matrix = NDArray[np.float64]
GROUP = 32
FLOAT_TYPES = {"F32", "F16", "BF16"}


class Llama:
    """A model file of architecture `llama`, dequantised to float64."""

    def __init__(
        self, path: Path, *, int8: bool = False, smoothing: Mapping[str, Smoothing] = MappingProxyType({})
    ) -> None:
        reader = gguf.GGUFReader(path)
        self._keys: dict[str, Any] = {name: field.contents() for name, field in reader.fields.items()}
        self._tensors: dict[str, Matrix] = {}
        self._quantised: set[str] = set()
        for tensor in reader.tensors:
            shape = tuple(int(n) for n in reversed(tensor.shape))
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(shape)
            self._tensors[tensor.name] = values.astype(np.float64)
            if int8 and tensor.tensor_type.name not in FLOAT_TYPES:
                self._quantised.add(tensor.name)
        self._smoothing = {name: each for name, each in smoothing.items() if name in self._quantised}
        self.heads = int(self._keys["llama.attention.head_count"])
        self.kv_heads = int(self._keys["llama.attention.head_count_kv"])
        self.head_dim = int(self._keys["llama.attention.key_length"])
        self._inv_freq = self._frequencies()

    def logits(self, ids: Sequence[int]) -> Matrix:
        """Logits after each of `ids`, float64 [len(ids), vocabulary]."""
        x = self._tensors["token_embd.weight"][np.asarray(ids)]
        cos, sin = self._rotation(len(ids))
        for i in range(int(self._keys["llama.block_count"])):
            x = x + self._attention(i, x, cos, sin)
            x = x + self._feed_forward(i, x)
        output = "output.weight" if "output.weight" in self._tensors else "token_embd.weight"
        return self._linear(output, self._norm("output_norm.weight", x))

    def _attention(self, i: int, x: Matrix, cos: Matrix, sin: Matrix) -> Matrix:
        n, d = len(x), self.head_dim
        h = self._norm(f"blk.{i}.attn_norm.weight", x)
        q = _rotate(self._linear(f"blk.{i}.attn_q.weight", h).reshape(n, self.heads, d), cos, sin)
        k = _rotate(self._linear(f"blk.{i}.attn_k.weight", h).reshape(n, self.kv_heads, d), cos, sin)
        v = self._linear(f"blk.{i}.attn_v.weight", h).reshape(n, self.kv_heads, d)
        mask = np.triu(np.full((n, n), -np.inf), 1)
        mixed = np.empty((n, self.heads, d))
        for head in range(self.heads):
            group = head * self.kv_heads // self.heads
            scores = q[:, head] @ k[:, group].T / np.sqrt(d) + mask
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            mixed[:, head] = weights / weights.sum(axis=1, keepdims=True) @ v[:, group]
        return self._linear(f"blk.{i}.attn_output.weight", mixed.reshape(n, -1))

    def _feed_forward(self, i: int, x: Matrix) -> Matrix:
        h = self._norm(f"blk.{i}.ffn_norm.weight", x)
        gate, up = self._linear(f"blk.{i}.ffn_gate.weight", h), self._linear(f"blk.{i}.ffn_up.weight", h)
        return self._linear(f"blk.{i}.ffn_down.weight", gate / (1 + np.exp(-gate)) * up)

    def _norm(self, name: str, x: Matrix) -> Matrix:
        eps = float(self._keys["llama.attention.layer_norm_rms_epsilon"])
        return x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + eps) * self._tensors[name]

    def _linear(self, name: str, x: Matrix) -> Matrix:
        if name in self._smoothing:
            s, u, outliers = self._smoothing[name]
            w, kept = self._tensors[name], list(outliers)
            return _int8(x * u, x.shape[1]) @ _int8(w * s, w.shape[1]).T + x[:, kept] @ w[:, kept].T
        return (_int8(x) if name in self._quantised else x) @ self._tensors[name].T

    def _frequencies(self) -> NDArray[np.float32]:
        keys, d = self._keys, self.head_dim
        base = float(keys.get("llama.rope.freq_base", 10000.0))
        inverse = (base ** -(np.arange(0, d, 2) / d)).astype(np.float32)
        kind = keys.get("llama.rope.scaling.type")
        if "rope_freqs.weight" in self._tensors:
            divisors = self._tensors["rope_freqs.weight"]
        elif kind == "linear":
            divisors = np.full(d // 2, keys["llama.rope.scaling.factor"])
        elif kind == "llama3":
            config = {
                "rope_theta": base,
                "factor": keys["llama.rope.scaling.factor"],
                "low_freq_factor": keys["llama.rope.scaling.low_freq_factor"],
                "high_freq_factor": keys["llama.rope.scaling.high_freq_factor"],
                "original_max_position_embeddings": keys["llama.rope.scaling.original_context_length"],
            }
            divisors = convert.rope_divisors(d, config).astype(np.float64)
        else:
            divisors = np.ones(d // 2)
        return (inverse / divisors).astype(np.float32)

    def _rotation(self, n: int) -> tuple[Matrix, Matrix]:
        angles = np.arange(n, dtype=np.float32)[:, None, None] * self._inv_freq
        return np.cos(angles.astype(np.float64)), np.sin(angles.astype(np.float64))


def _rotate(x: Matrix, cos: Matrix, sin: Matrix) -> Matrix:
    """Turns neighbouring pairs of [tokens, heads, d] by the angles [tokens, 1, d / 2]."""
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = np.empty_like(x)
    turned[..., 0::2] = even * cos - odd * sin
    turned[..., 1::2] = even * sin + odd * cos
    return turned


def _int8(x: Matrix, group: int = GROUP) -> Matrix:
    """Rounds to multiples of max / 127 within each group of columns."""
    groups = x.reshape(len(x), -1, group)
    scale = np.abs(groups).max(axis=2, keepdims=True) / 127
    steps = np.divide(groups, scale, out=np.zeros_like(groups), where=scale > 0)
    return (np.rint(steps) * scale).reshape(x.shape)
