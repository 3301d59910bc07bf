# SPDX-License-Identifier: Apache-2.0
"""What a weight file is to the rest of the engine, whatever its format.

A source is a mapping from tensor names to facts (`TensorInfo`) and to read-only bytes that are never copied: the
file stays mapped, and the packer reads each tensor once, straight from the page cache. Shapes are row-major, as in
numpy: a linear layer of 1536 outputs over 576 inputs has shape (1536, 576) and its rows are contiguous.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from smepilot.errors import UnsupportedModelError
from smepilot.weights.dtypes import SUPPORTED


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor of a file; `nbytes` and `offset` (absolute in the file) have been checked against its length."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    offset: int


class WeightSource(Protocol):
    """An open model file. Closing it is safe while views are alive: they keep the mapping until they die."""

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Key to value; arrays of strings are decoded on demand, arrays of numbers are read-only numpy arrays."""

    @property
    def tensors(self) -> Mapping[str, TensorInfo]:
        """Name to facts, in the file's order."""

    def data(self, name: str) -> memoryview:
        """The bytes of one tensor as stored: a read-only view over the mapping, no copy."""

    def fingerprint(self) -> str:
        """SHA-256 (hex) of everything before the tensor data: header, metadata and tensor table."""

    def close(self) -> None:
        """Gives the mapping back; a second call does nothing."""

    def __enter__(self) -> Self:
        """The source itself."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the source."""


def require_supported(source: WeightSource) -> None:
    """Raises UnsupportedModelError for the first tensor whose element type the engine cannot multiply with."""
    refused = [tensor for tensor in source.tensors.values() if tensor.dtype not in SUPPORTED]
    if refused:
        first, others = refused[0], len(refused) - 1
        more = f" (as have {others} more)" if others else ""
        raise UnsupportedModelError(
            f"{source.path}: tensor {first.name!r} has type {first.dtype}{more}, which this version cannot run; "
            f"use a file in one of {', '.join(sorted(SUPPORTED))}"
        )
