# SPDX-License-Identifier: Apache-2.0
"""`llama`: Llama 1 to 3.x, SmolLM2 and others that declare this architecture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smepilot.arch import rope
from smepilot.arch.config import ModelConfig, ParameterNames, check_head
from smepilot.errors import FileFormatError, UnsupportedModelError


def _number(metadata: Mapping[str, Any], key: str, where: str, default: float | None = None) -> float:
    value = metadata.get(key, default)
    if value is None:
        raise FileFormatError(f"{where}: metadata key {key} is missing")
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise FileFormatError(f"{where}: metadata key {key} is not a number")
    if not math.isfinite(value):
        raise FileFormatError(f"{where}: metadata key {key} is {value}, not a finite number")
    return float(value)


def _positive(metadata: Mapping[str, Any], key: str, where: str, default: float | None = None) -> float:
    value = _number(metadata, key, where, default)
    if value <= 0:
        raise FileFormatError(f"{where}: metadata key {key} is {value}; it must be positive")
    return value


def _count(metadata: Mapping[str, Any], key: str, where: str, default: int | None = None) -> int:
    value = _number(metadata, key, where, default)
    if value != int(value):
        raise FileFormatError(f"{where}: metadata key {key} is {value}, not a whole number")
    return int(value)


def _frequencies(
    metadata: Mapping[str, Any], factors: NDArray[np.float32] | None, head_dim: int, where: str
) -> NDArray[np.float32]:
    base = _number(metadata, "llama.rope.freq_base", where, 10000.0)
    if not 1 <= base <= 1e30:
        raise FileFormatError(f"{where}: llama.rope.freq_base is {base}; it must be between 1 and 1e30")
    inv_freq = rope.inverse_frequencies(base, head_dim)
    if factors is not None:
        if len(factors) != len(inv_freq) or not np.all(np.isfinite(factors)) or not np.all(factors > 0):
            raise FileFormatError(f"{where}: tensor rope_freqs.weight does not hold {len(inv_freq)} positive numbers")
        return rope.divided(inv_freq, factors)
    kind = metadata.get("llama.rope.scaling.type", "none")
    if not isinstance(kind, str):
        raise FileFormatError(f"{where}: metadata key llama.rope.scaling.type is not a string")
    if kind == "none":
        return inv_freq
    factor = _positive(metadata, "llama.rope.scaling.factor", where, 1.0)
    if kind == "linear":
        return rope.divided(inv_freq, [factor] * len(inv_freq))
    if kind == "llama3":
        prefix = "llama.rope.scaling."
        low = _positive(metadata, prefix + "low_freq_factor", where, 1.0)
        high = _positive(metadata, prefix + "high_freq_factor", where, 4.0)
        if low >= high:
            raise FileFormatError(f"{where}: {prefix}low_freq_factor {low} is not below high_freq_factor {high}")
        context = _positive(metadata, prefix + "original_context_length", where, 8192)
        return rope.llama3_scaled(inv_freq, factor=factor, low=low, high=high, original_context=context)
    raise UnsupportedModelError(f"{where}: rope scaling {kind!r} is not supported; known: none, linear, llama3")


def config(
    metadata: Mapping[str, Any], tensors: Mapping[str, Any], where: str, rope_factors: NDArray[np.float32] | None
) -> ModelConfig:
    """The configuration of a `llama` file; see `smepilot.arch.from_metadata`."""
    names = ParameterNames()
    n_heads = _count(metadata, "llama.attention.head_count", where)
    d_model = _count(metadata, "llama.embedding_length", where)
    if n_heads < 1:
        raise FileFormatError(f"{where}: llama.attention.head_count is {n_heads}")
    head_dim = _count(metadata, "llama.attention.key_length", where, d_model // n_heads)
    check_head(where, head_dim)
    if _count(metadata, "llama.attention.value_length", where, head_dim) != head_dim:
        raise UnsupportedModelError(f"{where}: keys and values of different length are not supported")
    rotated = _count(metadata, "llama.rope.dimension_count", where, head_dim)
    if rotated != head_dim:
        raise UnsupportedModelError(
            f"{where}: {rotated} of {head_dim} dimensions rotated; partial rotation is not supported"
        )
    if _count(metadata, "llama.expert_count", where, 0):
        raise UnsupportedModelError(f"{where}: mixtures of experts are not supported for architecture 'llama'")
    if names.embedding not in tensors:
        raise FileFormatError(f"{where}: tensor {names.embedding} is missing")
    vocab_size = int(tensors[names.embedding].shape[0])
    return ModelConfig(
        architecture="llama",
        name=where,
        vocab_size=vocab_size,
        context_length=_count(metadata, "llama.context_length", where),
        n_layers=_count(metadata, "llama.block_count", where),
        d_model=d_model,
        d_ff=_count(metadata, "llama.feed_forward_length", where),
        n_heads=n_heads,
        n_kv_heads=_count(metadata, "llama.attention.head_count_kv", where, n_heads),
        head_dim=head_dim,
        rms_eps=_positive(metadata, "llama.attention.layer_norm_rms_epsilon", where),
        inv_freq=tuple(float(f) for f in _frequencies(metadata, rope_factors, head_dim, where)),
        interleaved_rope=True,
        tied_output=names.output not in tensors,
        names=names,
    )
