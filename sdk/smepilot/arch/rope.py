# SPDX-License-Identifier: Apache-2.0
"""Inverse frequencies of rotary embeddings, with the scaling of Llama 3."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def inverse_frequencies(base: float, dim: int) -> NDArray[np.float32]:
    """base^(-2i/dim) for i < dim/2 (Su et al., RoFormer, section 3.2.2).

    The power is rounded to float32 and then inverted in float32, as Hugging Face does; it is taken in double so that
    it does not depend on the platform's float32 power.
    """
    powers = [base ** (i / dim) for i in range(0, dim, 2)]
    return np.float32(1.0) / np.asarray(powers, dtype=np.float32)


def divided(inv_freq: NDArray[np.float32], factors: Sequence[float] | NDArray[np.float32]) -> NDArray[np.float32]:
    """Frequencies divided by per-frequency factors: the `rope_freqs` tensor of a GGUF file."""
    return (inv_freq / np.asarray(factors, dtype=np.float32)).astype(np.float32)


def llama3_scaled(
    inv_freq: NDArray[np.float32], *, factor: float, low: float, high: float, original_context: float
) -> NDArray[np.float32]:
    """The frequency scaling of Llama 3.1: long wavelengths divided by `factor`, short ones kept, a ramp between.

    A frequency's wavelength is 2 pi / f. Above original_context / low it is scaled, below original_context / high it
    is kept.
    """
    scaled = []
    for f in inv_freq.astype(np.float64):
        wavelength = 2 * math.pi / f
        ramp = (original_context / wavelength - low) / (high - low)
        smooth = min(1.0, max(0.0, ramp))
        scaled.append((1 - smooth) * f / factor + smooth * f)
    return np.asarray(scaled, dtype=np.float32)
