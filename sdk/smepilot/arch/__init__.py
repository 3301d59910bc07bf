# SPDX-License-Identifier: Apache-2.0
"""Floor 2: model architectures, one file each, named by the value of `general.architecture`.

An architecture turns a file's metadata into a `ModelConfig` and says which of the file's tensors are which
parameters. It holds no weights and runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smepilot.arch import llama
from smepilot.arch.config import ModelConfig, ParameterNames
from smepilot.errors import UnsupportedModelError

_Reader = Callable[[Mapping[str, Any], Mapping[str, Any], str, NDArray[np.float32] | None], ModelConfig]
_ARCHITECTURES: Mapping[str, _Reader] = {"llama": llama.config}


def from_metadata(
    metadata: Mapping[str, Any],
    tensors: Mapping[str, Any],
    *,
    where: str,
    rope_factors: NDArray[np.float32] | None = None,
) -> ModelConfig:
    """Reads a model's configuration.

    Args:
        metadata: GGUF key-value pairs.
        tensors: Tensor names of the file, mapped to objects with a `shape` (rows, columns).
        where: The file's name, for messages.
        rope_factors: Values of the file's `rope_freqs` tensor, if it has one.

    Raises:
        UnsupportedModelError: The architecture, or a feature of it, is not one of ours.
        FileFormatError: Values are missing or contradict each other.
    """
    name = metadata.get("general.architecture")
    if not isinstance(name, str) or name not in _ARCHITECTURES:
        known = ", ".join(sorted(_ARCHITECTURES))
        raise UnsupportedModelError(f"{where}: architecture {name!r} is not supported; this version runs: {known}")
    return _ARCHITECTURES[name](metadata, tensors, where, rope_factors)


__all__ = ["ModelConfig", "ParameterNames", "from_metadata"]
