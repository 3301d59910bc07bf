# SPDX-License-Identifier: Apache-2.0
"""What the `rowwise` precision class needs to know of a linear layer, and which layers share an input.

Rowwise, a layer's weights are expanded to int8 with one scale per row and its input to int8 with one scale per token.
Columns of an input whose activations are large are made smaller by `u` and the weights' columns larger by `s` = 1/u;
the few columns for which that is not enough are left out of both (s = u = 0) and added in float32.
"""

from __future__ import annotations

from dataclasses import dataclass

from smepilot.arch import ModelConfig


@dataclass(frozen=True, slots=True)
class RowwiseFacts:
    """The rowwise form of one weight matrix [rows][k]: addresses of float32 vectors, and the input's outlier columns.

    `inv` and `scale` have one element for each row, padded with zeros to a multiple of 16: with amax the largest
    |w[r][j] * s[j]|, 127 / amax and amax / 127; 0 for a row of zeros. `s` and `u` have k elements. Matrices that read
    the same input have equal `s`, `u` and `outliers`, which ascend.
    """

    inv: int
    scale: int
    s: int
    u: int
    outliers: tuple[int, ...] = ()


def linear_inputs(config: ModelConfig) -> dict[str, tuple[str, ...]]:
    """The activations that linear layers of the blocks read, named after their readers, with these' parameters."""
    n = config.names
    readers = {"qkv": (n.q, n.k, n.v), "o": (n.attn_output,), "gate_up": (n.gate, n.up), "down": (n.down,)}
    return {
        f"layers.{i}.{reader}": tuple(name.format(i=i) for name in names)
        for i in range(config.n_layers)
        for reader, names in readers.items()
    }
