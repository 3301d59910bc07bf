# SPDX-License-Identifier: Apache-2.0
"""Llama models of random weights in any size, written as GGUF with nothing but the ``gguf`` package.

Published models have round sizes; the engine promises more than that: heads of any multiple of 8, rows that fill no
panel, vocabularies of 279. A test names a `Shape`, draws its tensors, changes some if it wants a broken file, and
writes them. Matrices have deviation 1/sqrt(columns), so that activations neither die nor explode; norm weights lie
around 1 and differ, so that a norm that is left out or applied twice shows.

There is no tokenizer in these files: they are for what works on token ids.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Tensors = dict[str, Floats]

SCALING_KEYS = {
    "factor": "llama.rope.scaling.factor",
    "low": "llama.rope.scaling.low_freq_factor",
    "high": "llama.rope.scaling.high_freq_factor",
    "original": "llama.rope.scaling.original_context_length",
}


@dataclass(frozen=True)
class Shape:
    """Sizes of a model; `scaling` maps the words of SCALING_KEYS, and "type", to values."""

    d_model: int = 64
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    d_ff: int = 96
    layers: int = 1
    vocab: int = 279
    tied: bool = True
    context: int = 1024
    rope_base: float = 10000.0
    scaling: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        """What distinguishes it, as a test's name."""
        group = f"{self.heads}/{self.kv_heads}x{self.head_dim}"
        return f"d{self.d_model}-h{group}-ff{self.d_ff}-v{self.vocab}-{'tied' if self.tied else 'untied'}"


def tensors(shape: Shape, seed: int = 0) -> Tensors:
    """Draws the weights: names as in GGUF, float32, matrices [rows, columns]."""
    random = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> Floats:
        return (random.standard_normal((rows, columns)) / math.sqrt(columns)).astype(np.float32)

    def vector(size: int) -> Floats:
        return random.uniform(0.5, 1.5, size).astype(np.float32)

    d, q, kv = shape.d_model, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    drawn = {"token_embd.weight": random.standard_normal((shape.vocab, d)).astype(np.float32)}
    for i in range(shape.layers):
        block = {
            "attn_norm": vector(d),
            "attn_q": matrix(q, d),
            "attn_k": matrix(kv, d),
            "attn_v": matrix(kv, d),
            "attn_output": matrix(d, q),
            "ffn_norm": vector(d),
            "ffn_gate": matrix(shape.d_ff, d),
            "ffn_up": matrix(shape.d_ff, d),
            "ffn_down": matrix(d, shape.d_ff),
        }
        drawn |= {f"blk.{i}.{part}.weight": values for part, values in block.items()}
    drawn["output_norm.weight"] = vector(d)
    if not shape.tied:
        drawn["output.weight"] = matrix(shape.vocab, d)
    return drawn


def metadata(shape: Shape) -> dict[str, Any]:
    """The keys that describe `shape`."""
    keys: dict[str, Any] = {
        "llama.context_length": shape.context,
        "llama.embedding_length": shape.d_model,
        "llama.block_count": shape.layers,
        "llama.feed_forward_length": shape.d_ff,
        "llama.attention.head_count": shape.heads,
        "llama.attention.head_count_kv": shape.kv_heads,
        "llama.attention.key_length": shape.head_dim,
        "llama.attention.value_length": shape.head_dim,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": shape.head_dim,
        "llama.rope.freq_base": shape.rope_base,
    }
    if shape.scaling:
        keys["llama.rope.scaling.type"] = shape.scaling["type"]
        keys |= {SCALING_KEYS[word]: value for word, value in shape.scaling.items() if word != "type"}
    return keys


def write(
    path: Path,
    shape: Shape,
    *,
    seed: int = 0,
    dtype: str | Mapping[str, str] = "F32",
    weights: Tensors | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Path:
    """Writes a model file.

    Args:
        path: The file.
        shape: Its sizes; the metadata says them whatever `weights` holds.
        seed: Of the weights that are drawn when `weights` is None.
        dtype: GGML type of the matrices, or a type per tensor name, F32 where it has none. Vectors stay F32 unless
            named.
        weights: Tensors to write instead.
        extra: Metadata to add or to replace; None as a value leaves a key out.

    Returns:
        `path`.
    """
    keys = metadata(shape) | dict(extra or {})
    writer = gguf.GGUFWriter(path, keys.pop("general.architecture", "llama"))
    for key, value in keys.items():
        if value is not None:
            writer.add_key_value(
                key, value, _kind(value), gguf.GGUFValueType.INT32 if isinstance(value, list) else None
            )
    for name, values in (tensors(shape, seed) if weights is None else weights).items():
        plain = dtype if isinstance(dtype, str) and values.ndim > 1 else "F32"
        kind = gguf.GGMLQuantizationType[plain if isinstance(dtype, str) else dtype.get(name, "F32")]
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _kind(value: Any) -> gguf.GGUFValueType:
    if isinstance(value, list):
        return gguf.GGUFValueType.ARRAY
    if isinstance(value, str):
        return gguf.GGUFValueType.STRING
    return gguf.GGUFValueType.FLOAT32 if isinstance(value, float) else gguf.GGUFValueType.INT64
