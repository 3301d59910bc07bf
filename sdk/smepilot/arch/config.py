# SPDX-License-Identifier: Apache-2.0
"""`ModelConfig`: the numbers that define a decoder, checked once, used everywhere."""

from __future__ import annotations

from dataclasses import dataclass

from smepilot.errors import FileFormatError, UnsupportedModelError

MAX_HEAD_DIM = 256
"""Largest head that the operators' tiles hold."""


def check_head(model: str, head_dim: int) -> None:
    """Raises UnsupportedModelError for a size of heads that the operators do not take."""
    if head_dim % 8 or not 0 < head_dim <= MAX_HEAD_DIM:
        raise UnsupportedModelError(
            f"{model}: head size {head_dim} is not supported; it must be a multiple of 8 up to {MAX_HEAD_DIM}"
        )


@dataclass(frozen=True, slots=True)
class ParameterNames:
    """Tensor names of a file, with `{i}` for the layer."""

    embedding: str = "token_embd.weight"
    output_norm: str = "output_norm.weight"
    output: str = "output.weight"
    attn_norm: str = "blk.{i}.attn_norm.weight"
    q: str = "blk.{i}.attn_q.weight"
    k: str = "blk.{i}.attn_k.weight"
    v: str = "blk.{i}.attn_v.weight"
    attn_output: str = "blk.{i}.attn_output.weight"
    ffn_norm: str = "blk.{i}.ffn_norm.weight"
    gate: str = "blk.{i}.ffn_gate.weight"
    up: str = "blk.{i}.ffn_up.weight"
    down: str = "blk.{i}.ffn_down.weight"


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A decoder-only transformer.

    Sizes are counts of elements. `inv_freq` holds the inverse frequencies of the rotary embedding as float32 values
    in Python floats, any scaling of the model's own folded in. `interleaved_rope` says that the file's Q and K rows
    are ordered for rotation of neighbouring pairs; packing reorders them for the half-split form used throughout.
    """

    architecture: str
    name: str
    vocab_size: int
    context_length: int
    n_layers: int
    d_model: int
    d_ff: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    rms_eps: float
    inv_freq: tuple[float, ...]
    interleaved_rope: bool
    tied_output: bool
    names: ParameterNames = ParameterNames()

    def __post_init__(self) -> None:
        """Checks what the operators rely on."""
        counts = ("vocab_size", "context_length", "n_layers", "d_model", "d_ff", "n_heads", "n_kv_heads", "head_dim")
        for field in counts:
            value = getattr(self, field)
            if not 0 < value < 1 << 24:
                raise FileFormatError(f"{self.name}: {field} is {value}; expected a positive number below 2^24")
        if self.n_heads % self.n_kv_heads:
            raise FileFormatError(f"{self.name}: {self.n_heads} heads do not divide into {self.n_kv_heads} KV heads")
        check_head(self.name, self.head_dim)
        for field in ("d_model", "d_ff"):
            if getattr(self, field) % 8:
                raise UnsupportedModelError(f"{self.name}: {field} {getattr(self, field)} is not a multiple of 8")
        if len(self.inv_freq) != self.head_dim // 2:
            raise FileFormatError(
                f"{self.name}: {len(self.inv_freq)} rotary frequencies for a head of {self.head_dim}; "
                "partial rotation is not supported"
            )

    @property
    def q_size(self) -> int:
        """Columns of Q: heads x head size."""
        return self.n_heads * self.head_dim

    @property
    def kv_size(self) -> int:
        """Columns of K and of V: key/value heads x head size."""
        return self.n_kv_heads * self.head_dim

    @property
    def linear_parameters(self) -> int:
        """Weights of the linear layers of all blocks: a prompt token costs twice as many operations."""
        attention = self.d_model * (self.q_size + 2 * self.kv_size) + self.q_size * self.d_model
        return self.n_layers * (attention + 3 * self.d_model * self.d_ff)
