# SPDX-License-Identifier: Apache-2.0
"""How much of the machine a rate uses.

Two limits, both measured just before the run with our own probes, because neighbours lift and sink them:
 - decode reads every weight and the cache once per step, so its ceiling is the read bandwidth;
 - a prompt multiplies 8-bit integers (activations are int8 whatever the weights' format), so its ceiling is the int8
   peak: 2 operations per weight and token in the linear layers. Attention is left out of the numerator, so its cost
   shows as a fraction that falls with the prompt's length.

A model smaller than the last-level cache can exceed 1 in decode: part of it is not read from memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from smepilot.bench.cases import Case
from smepilot.weights.gguf import open_gguf

_PROBE_BYTES = 512 << 20  # far beyond any last-level cache
_EMBEDDING = "token_embd.weight"
_OUTPUT = "output.weight"


@dataclass(frozen=True)
class Machine:
    """What this machine reached with `threads` threads: bytes/s read from memory, int8 operations/s."""

    threads: int
    read_bandwidth: float
    int8_peak: float


@dataclass(frozen=True)
class Work:
    """What a model costs.

    Attributes:
        layer_params: Weights of the linear layers of all blocks.
        step_bytes: Bytes of all weights that one decode step reads, output matrix and norms included.
        position_bytes: Bytes of float16 keys and values per position.
        quantised: Whether the linear layers multiply integers.
        params: All weights.
        size: Bytes of all tensors.
    """

    layer_params: int
    step_bytes: int
    position_bytes: int
    quantised: bool
    params: int
    size: int


def measure(threads: int) -> Machine:
    """Probes the machine; takes about a second."""
    from smepilot import _native

    return Machine(
        threads=threads,
        read_bandwidth=_native.probe_read_bandwidth(threads, _PROBE_BYTES),
        int8_peak=_native.probe_int8_peak(threads),
    )


def work(model: Path) -> Work:
    """Reads a model's cost from its GGUF header."""
    with open_gguf(model) as source:
        tensors = source.tensors.values()
        matrices = [t for t in tensors if len(t.shape) == 2 and t.name not in (_EMBEDDING, _OUTPUT)]
        tied = _OUTPUT not in source.tensors
        total = sum(t.nbytes for t in tensors)
        meta, kind = source.metadata, source.metadata["general.architecture"]
        heads, blocks = meta[f"{kind}.attention.head_count"], meta[f"{kind}.block_count"]
        kv_heads = meta.get(f"{kind}.attention.head_count_kv", heads)
        head_dim = meta.get(f"{kind}.attention.key_length", meta[f"{kind}.embedding_length"] // heads)
        return Work(
            layer_params=sum(t.shape[0] * t.shape[1] for t in matrices),
            step_bytes=total if tied else total - source.tensors[_EMBEDDING].nbytes,
            position_bytes=2 * 2 * blocks * kv_heads * head_dim,
            quantised=all(t.dtype.startswith("Q") for t in matrices),
            params=sum(_product(t.shape) for t in tensors),
            size=total,
        )


def _product(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def fraction(case: Case, rate: float, cost: Work, machine: Machine) -> float | None:
    """Share of the machine's limit that `rate` (tokens/s) reaches; None for prompts on float weights."""
    if case.phase == "pp":
        return 2.0 * cost.layer_params * rate / machine.int8_peak if cost.quantised else None
    seen = case.depth + (case.tokens + 1) / 2  # positions that an average step reads
    step = cost.step_bytes + case.sequences * seen * cost.position_bytes
    return rate / case.sequences * step / machine.read_bandwidth
