# SPDX-License-Identifier: Apache-2.0
"""From a model file to packed weights that the kernels read: mapped from the cache, or packed now.

The packed file mirrors the source's parameters one to one. Q and K rows that are ordered for the rotation of
neighbouring pairs are reordered here, once, for the half-split form; norms become float32 vectors. What the file
holds beside the architecture's parameters is refused: a tensor that is silently left out makes silent nonsense.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from smepilot import _native, arch
from smepilot.arch import ModelConfig
from smepilot.errors import FileFormatError, StoreError, UnsupportedModelError
from smepilot.plan import RowwiseFacts
from smepilot.runtime.packed import PackedFile, open_packed, pack_in_memory, source_key, write_packed
from smepilot.runtime.rowwise import Rowwise
from smepilot.types import PromptClass
from smepilot.weights.gguf import open_gguf
from smepilot.weights.source import TensorInfo, WeightSource, require_supported

if TYPE_CHECKING:
    from concurrent.futures import Executor

LAYOUT_VERSION = "2"
"""Changes whenever the packed layouts or the order of packed rows change."""
ROPE_FACTORS = "rope_freqs.weight"
PANEL_ROWS = 16

Fraction = Callable[[float], None]
Linear = tuple[int, str, int, int]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A tensor of the source and how it is packed.

    A matrix has `rows` of `k` columns. A norm vector of `k` values has `rows` 0. `pairs` is the size of heads whose
    rows are ordered for the rotation of neighbouring pairs, 0 for rows that keep their order.
    """

    name: str
    rows: int
    k: int
    pairs: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's shape in the file."""
        return (self.rows, self.k) if self.rows else (self.k,)

    def order(self) -> NDArray[np.int64]:
        """File rows in packed order: pairs (2i, 2i + 1) of each head become halves (i, i + d/2)."""
        rows = np.arange(self.rows, dtype=np.int64)
        return rows.reshape(-1, self.pairs // 2, 2).swapaxes(1, 2).reshape(-1) if self.pairs else rows


@dataclass(frozen=True, slots=True)
class Model:
    """An open model: its configuration, its packed weights, and the file they came from.

    `key` names everything the packed weights depend on. Prompts are computed in `prompt_class`; where that is rowwise,
    `rowwise` has what it needs, in memory that belongs to `prompts`.
    """

    config: ModelConfig
    formats: Mapping[str, str]
    weights: Mapping[str, Linear]
    packed: PackedFile
    source: WeightSource
    key: str
    prompt_class: PromptClass = "grouped"
    rowwise: Mapping[str, RowwiseFacts] = field(default_factory=dict)
    prompts: Rowwise | None = None

    @property
    def class_key(self) -> str:
        """Equal where prompts are computed to the same bits from the same weights."""
        if self.prompt_class == "grouped" or self.prompts is None:
            return self.prompt_class
        return f"{self.prompt_class}:{self.prompts.key}"

    def close(self) -> None:
        """Gives all mappings back."""
        if self.prompts is not None:
            self.prompts.file.close()
        self.packed.close()
        self.source.close()


def parameters(config: ModelConfig) -> Iterator[Parameter]:
    """Every parameter of the model with its expected shape."""
    names, d = config.names, config.d_model
    pairs = config.head_dim if config.interleaved_rope else 0
    yield Parameter(names.embedding, config.vocab_size, d)
    for i in range(config.n_layers):
        yield Parameter(names.attn_norm.format(i=i), 0, d)
        yield Parameter(names.q.format(i=i), config.q_size, d, pairs)
        yield Parameter(names.k.format(i=i), config.kv_size, d, pairs)
        yield Parameter(names.v.format(i=i), config.kv_size, d)
        yield Parameter(names.attn_output.format(i=i), d, config.q_size)
        yield Parameter(names.ffn_norm.format(i=i), 0, d)
        yield Parameter(names.gate.format(i=i), config.d_ff, d)
        yield Parameter(names.up.format(i=i), config.d_ff, d)
        yield Parameter(names.down.format(i=i), d, config.d_ff)
    yield Parameter(names.output_norm, 0, d)
    if not config.tied_output:
        yield Parameter(names.output, config.vocab_size, d)


def _checked(source: WeightSource, parameter: Parameter) -> TensorInfo:
    info = source.tensors.get(parameter.name)
    if info is None:
        raise FileFormatError(f"{source.path}: tensor {parameter.name!r} is missing")
    if info.shape != parameter.shape:
        raise FileFormatError(
            f"{source.path}: tensor {parameter.name!r} has shape {info.shape}, expected {parameter.shape}"
        )
    if not parameter.rows and info.dtype != "F32":
        raise UnsupportedModelError(f"{source.path}: tensor {parameter.name!r} has type {info.dtype}, expected F32")
    return info


def _rope_factors(source: WeightSource) -> NDArray[np.float32] | None:
    """The divisors of the rotary frequencies, where the file has them as a tensor."""
    info = source.tensors.get(ROPE_FACTORS)
    if info is None:
        return None
    if info.dtype != "F32" or len(info.shape) != 1:
        raise FileFormatError(f"{source.path}: tensor {ROPE_FACTORS!r} is no vector of type F32")
    return np.frombuffer(source.data(ROPE_FACTORS), np.float32)


def _refuse_extra(source: WeightSource, known: set[str]) -> None:
    extra = [name for name in source.tensors if name not in known and name != ROPE_FACTORS]
    if extra:
        raise UnsupportedModelError(
            f"{source.path}: tensor {extra[0]!r} is not part of architecture "
            f"{source.metadata.get('general.architecture')!r} as this version knows it"
        )


def _fill(source: WeightSource, parameter: Parameter, dtype: str, threads: Executor, out: memoryview) -> None:
    data = source.data(parameter.name)
    if not parameter.rows:
        out[:] = data
        return
    # Panels are independent, so two threads halve the time; packing releases the GIL.
    order = parameter.order()
    panels = -(-parameter.rows // PANEL_ROWS)
    panel_bytes = len(out) // panels
    step = max(1, -(-panels // 8))

    def part(first: int) -> None:
        last = min(first + step, panels)
        rows = order[first * PANEL_ROWS : last * PANEL_ROWS]
        _native.pack(dtype, parameter.k, data, rows, out[first * panel_bytes : last * panel_bytes])

    list(threads.map(part, range(0, panels, step)))


def _pack(
    source: WeightSource, wanted: list[Parameter], cache_dir: Path | None, key: str, on_progress: Fraction | None
) -> PackedFile:
    from concurrent.futures import ThreadPoolExecutor  # not needed by a start that finds its weights packed

    progress = None if on_progress is None else lambda done, total: on_progress(done / max(1, total))
    metadata = {"source": source.path.name, "layout": LAYOUT_VERSION}
    items = []
    with ThreadPoolExecutor(max_workers=2) as threads:
        for parameter in wanted:
            info = source.tensors[parameter.name]
            nbytes = info.nbytes
            if parameter.rows:
                nbytes = _native.packed_bytes(info.dtype, parameter.rows, parameter.k)
            items.append((parameter.name, nbytes, partial(_fill, source, parameter, info.dtype, threads)))
        if cache_dir is not None:
            try:
                return write_packed(_packed_path(cache_dir), key, metadata, items, progress)
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
        factors = _rope_factors(source)
        config = arch.from_metadata(source.metadata, source.tensors, where=path.name, rope_factors=factors)
        wanted, infos = [], {}
        for parameter in parameters(config):  # ends at the first fault, however many layers the metadata claims
            infos[parameter.name] = _checked(source, parameter)
            wanted.append(parameter)
        _refuse_extra(source, set(infos))
        key = source_key(source, LAYOUT_VERSION)
        packed = None if cache_dir is None else open_packed(_packed_path(cache_dir), key)
        if packed is None:
            packed = _pack(source, wanted, cache_dir, key, on_progress)
    except BaseException:
        source.close()
        raise
    weights = {p.name: (packed.address(p.name), infos[p.name].dtype, p.k, p.rows) for p in wanted}
    formats = {name: info.dtype for name, info in infos.items()}
    return Model(config, formats, weights, packed, source, key)
