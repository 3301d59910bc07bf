# SPDX-License-Identifier: Apache-2.0
"""Shapes of real models, for benchmarks with random weights: speed depends on the sizes, not on what was learnt."""

from __future__ import annotations

import math
from dataclasses import dataclass

from smepilot.errors import InvalidParameterError


@dataclass(frozen=True)
class Shape:
    """The sizes of a decoder; counts of elements.

    Attributes:
        architecture: `general.architecture` of the file.
        layers: Blocks.
        hidden: Width of the residual stream.
        ffn: Width inside the feed-forward.
        heads: Query heads.
        kv_heads: Key and value heads.
        head_dim: Width of a head.
        vocabulary: Tokens.
        context: Longest context of the original.
        rope_base: Base of the rotary frequencies.
        rms_eps: Of the norms.
        llama3_factor: How much Llama 3's scaling stretches the slow rotations; 1 for none.
        tied: Whether the output matrix is the embedding.
        qk_norm: Whether every query and key head has a norm (Qwen3).
    """

    architecture: str
    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    context: int
    rope_base: float
    rms_eps: float = 1e-5
    llama3_factor: float = 1.0
    tied: bool = True
    qk_norm: bool = False

    def rope_factors(self) -> list[float] | None:
        """Divisors of the rotary frequencies (Llama 3's scaling), as `rope_freqs.weight` holds them; None for none.

        Wavelengths below 2048 positions stay, those beyond 8192 are stretched by the factor, between lies a ramp.
        """
        if self.llama3_factor == 1.0:
            return None
        original, low, high = 8192, 1.0, 4.0
        factors = []
        for i in range(self.head_dim // 2):
            wavelength = 2 * math.pi * self.rope_base ** (2 * i / self.head_dim)
            ramp = min(max((original / wavelength - low) / (high - low), 0.0), 1.0)
            factors.append(1 / ((1 - ramp) / self.llama3_factor + ramp))
        return factors


SHAPES = {
    "smollm2-135m": Shape("llama", 30, 576, 1536, 9, 3, 64, 49152, 8192, 1e5),
    "llama-3.2-1b": Shape("llama", 16, 2048, 8192, 32, 8, 64, 128256, 131072, 5e5, llama3_factor=32.0),
    "llama-3.2-3b": Shape("llama", 28, 3072, 8192, 24, 8, 128, 128256, 131072, 5e5, llama3_factor=32.0),
    "llama-3.1-8b": Shape("llama", 32, 4096, 14336, 32, 8, 128, 128256, 131072, 5e5, llama3_factor=8.0, tied=False),
    "qwen3-4b": Shape("qwen3", 36, 2560, 9728, 32, 8, 128, 151936, 40960, 1e6, rms_eps=1e-6, qk_norm=True),
}


def shape_named(name: str) -> Shape:
    """Looks a shape up.

    Raises:
        InvalidParameterError: There is none of that name; the message lists those that are.
    """
    if name not in SHAPES:
        raise InvalidParameterError(f"no shape is called {name!r}; there are {', '.join(SHAPES)}")
    return SHAPES[name]
