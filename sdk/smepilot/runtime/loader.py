# SPDX-License-Identifier: Apache-2.0
"""From a model file to packed weights that the kernels read: mapped from the cache, or packed now.

The packed file mirrors the source's parameters one to one. Q and K rows that are ordered for the rotation of
neighbouring pairs are reordered here, once, for the half-split form; norms become float32 vectors. What the file
holds beside the architecture's parameters is refused: a tensor that is silently left out makes silent nonsense.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smepilot import _native, arch
from smepilot.arch import ModelConfig
from smepilot.errors import FileFormatError, StoreError, UnsupportedModelError
from smepilot.runtime.packed import PackedFile, open_packed, pack_in_memory, source_key, write_packed
from smepilot.weights.gguf import open_gguf
from smepilot.weights.source import TensorInfo, WeightSource, require_supported

LAYOUT_VERSION = "1"
"""Changes whenever the packed layouts or the order of packed rows change."""
ROPE_FACTORS = "rope_freqs.weight"
PANEL_ROWS = 16

Fraction = Callable[[float], None]
Linear = tuple[int, str, int, int]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A tensor of the source and how it is packed. `order` maps packed rows to file rows; None for a norm vector."""

    name: str
    rows: int
    k: int
    order: NDArray[np.int64] | None


@dataclass(frozen=True, slots=True)
class Model:
    """An open model: its configuration, its packed weights, and the file they came from."""

    config: ModelConfig
    formats: Mapping[str, str]
    weights: Mapping[str, Linear]
    packed: PackedFile
    source: WeightSource

    def close(self) -> None:
        """Gives both mappings back."""
        self.packed.close()
        self.source.close()


def _half_split(heads: int, head_dim: int) -> NDArray[np.int64]:
    """File rows in the order that turns neighbouring pairs (2i, 2i+1) of each head into halves (i, i + d/2)."""
    within = np.arange(head_dim, dtype=np.int64).reshape(head_dim // 2, 2).T.reshape(-1)
    return (np.arange(heads, dtype=np.int64)[:, None] * head_dim + within).reshape(-1)


def parameters(config: ModelConfig) -> Iterator[Parameter]:
    """Every parameter of the model with its expected shape."""
    names, d = config.names, config.d_model

    def matrix(name: str, rows: int, k: int, order: NDArray[np.int64] | None = None) -> Parameter:
        return Parameter(name, rows, k, np.arange(rows, dtype=np.int64) if order is None else order)

    def rotated(name: str, heads: int) -> Parameter:
        order = _half_split(heads, config.head_dim) if config.interleaved_rope else None
        return matrix(name, heads * config.head_dim, d, order)

    yield matrix(names.embedding, config.vocab_size, d)
    for i in range(config.n_layers):
        yield Parameter(names.attn_norm.format(i=i), 1, d, None)
        yield rotated(names.q.format(i=i), config.n_heads)
        yield rotated(names.k.format(i=i), config.n_kv_heads)
        yield matrix(names.v.format(i=i), config.kv_size, d)
        yield matrix(names.attn_output.format(i=i), d, config.q_size)
        yield Parameter(names.ffn_norm.format(i=i), 1, d, None)
        yield matrix(names.gate.format(i=i), config.d_ff, d)
        yield matrix(names.up.format(i=i), config.d_ff, d)
        yield matrix(names.down.format(i=i), d, config.d_ff)
    yield Parameter(names.output_norm, 1, d, None)
    if not config.tied_output:
        yield matrix(names.output, config.vocab_size, d)


def _checked(source: WeightSource, parameter: Parameter) -> TensorInfo:
    info = source.tensors.get(parameter.name)
    if info is None:
        raise FileFormatError(f"{source.path}: tensor {parameter.name!r} is missing")
    expected = (parameter.k,) if parameter.order is None else (parameter.rows, parameter.k)
    if info.shape != expected:
        raise FileFormatError(f"{source.path}: tensor {parameter.name!r} has shape {info.shape}, expected {expected}")
    if parameter.order is None and info.dtype != "F32":
        raise UnsupportedModelError(f"{source.path}: tensor {parameter.name!r} has type {info.dtype}, expected F32")
    return info


def _refuse_extra(source: WeightSource, known: set[str]) -> None:
    extra = [name for name in source.tensors if name not in known and name != ROPE_FACTORS]
    if extra:
        raise UnsupportedModelError(
            f"{source.path}: tensor {extra[0]!r} is not part of architecture "
            f"{source.metadata.get('general.architecture')!r} as this version knows it"
        )


def _fill(source: WeightSource, parameter: Parameter, dtype: str, out: memoryview) -> None:
    data = source.data(parameter.name)
    if parameter.order is None:
        out[:] = data
        return
    # Panels are independent, so two threads halve the time; packing releases the GIL.
    panels = -(-parameter.rows // PANEL_ROWS)
    panel_bytes = len(out) // panels
    step = max(1, -(-panels // 8))

    def part(first: int) -> None:
        last = min(first + step, panels)
        order = parameter.order[first * PANEL_ROWS : last * PANEL_ROWS]  # type: ignore[index]
        _native.pack(dtype, parameter.k, data, order, out[first * panel_bytes : last * panel_bytes])

    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(part, range(0, panels, step)))


def _pack(
    source: WeightSource, wanted: list[Parameter], cache_dir: Path | None, on_progress: Fraction | None
) -> PackedFile:
    items = []
    for parameter in wanted:
        info = source.tensors[parameter.name]
        nbytes = info.nbytes
        if parameter.order is not None:
            nbytes = _native.packed_bytes(info.dtype, parameter.rows, parameter.k)
        items.append((parameter.name, nbytes, partial(_fill, source, parameter, info.dtype)))
    progress = None if on_progress is None else lambda done, total: on_progress(done / max(1, total))
    metadata = {"source": source.path.name, "layout": LAYOUT_VERSION}
    if cache_dir is None:
        return pack_in_memory(metadata, items, progress)
    try:
        return write_packed(_packed_path(cache_dir), source_key(source, LAYOUT_VERSION), metadata, items, progress)
    except StoreError as error:
        log.warning("%s; packing into memory instead, which every start will repeat", error)
        return pack_in_memory(metadata, items, progress)


def _packed_path(cache_dir: Path) -> Path:
    return cache_dir / "weights.safetensors"


def load(path: Path, *, cache_dir: Path | None, on_progress: Fraction | None = None) -> Model:
    """Opens a GGUF file and maps its packed weights, packing them first where the cache has none.

    Args:
        path: A .gguf file.
        cache_dir: Folder of the packed weights; None packs into memory. Where the folder cannot be written or the
            disk is full, a warning is logged and memory is used.
        on_progress: Called with the fraction done while packing.

    Raises:
        FileFormatError, UnsupportedModelError: The file cannot be run; the message names the tensor or key.
    """
    source = open_gguf(path)
    try:
        require_supported(source)
        factors = np.frombuffer(source.data(ROPE_FACTORS), np.float32) if ROPE_FACTORS in source.tensors else None
        config = arch.from_metadata(source.metadata, source.tensors, where=path.name, rope_factors=factors)
        wanted = list(parameters(config))
        infos = {p.name: _checked(source, p) for p in wanted}
        _refuse_extra(source, set(infos))
        packed = None
        if cache_dir is not None:
            packed = open_packed(_packed_path(cache_dir), source_key(source, LAYOUT_VERSION))
        if packed is None:
            packed = _pack(source, wanted, cache_dir, on_progress)
    except BaseException:
        source.close()
        raise
    weights = {p.name: (packed.address(p.name), infos[p.name].dtype, p.k, p.rows) for p in wanted}
    formats = {name: info.dtype for name, info in infos.items()}
    return Model(config, formats, weights, packed, source)
