# SPDX-License-Identifier: Apache-2.0
# The typed surface of the extension, by floor of the C engine, lowest first.

from collections.abc import Sequence
from typing import Any, Literal, Self, TypedDict

import numpy as np
from numpy.typing import NDArray

# ---- floor A: the machine (cpu.pxi)

class _Cache(TypedDict):
    bytes: int
    sharers: int  # physical cores

class _Cluster(TypedDict):
    rank: int  # class of strength, 0 = strongest
    cores: int
    usable: int
    max_mhz: float | None
    capacity: int | None  # the kernel's relative strength, 1024 = strongest
    l1d: _Cache | None
    l2: _Cache | None
    l3: _Cache | None

class _CpuInfo(TypedDict):
    arch: str
    brand: str
    features: dict[str, bool]
    midr: int | None
    svl: int | None  # bytes
    cpus: int
    cores: int
    smt: int
    usable: int
    quota: float | None  # CPUs
    sme_units: int
    sme_private: bool
    sme_workers: int
    allowed: list[int]  # logical CPUs
    clusters: list[_Cluster]

def cpu_info() -> _CpuInfo: ...

# ---- floor C: workers (pool.pxi)

class _Placement(TypedDict):
    index: int
    kind: Literal["core", "sme"]
    cpu: int | None
    pin: Literal["none", "done", "refused", "ignored"]
    svl: int | None  # bytes
    started: bool
    active: bool

class Pool:
    counters: int
    closed: bool
    def __init__(
        self,
        threads: int | None = None,
        *,
        matrix: int = 0,
        spin_us: float = 100.0,
        pin: bool = True,
        counters: int = 64,
    ) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    def close(self) -> None: ...
    @property
    def threads(self) -> int: ...
    def counts(self) -> list[int]: ...
    def placement(self) -> list[_Placement]: ...

_Buffer = memoryview | bytes | NDArray[np.uint8]

# ---- beside the floors: vocabularies of model files (gguf.pxi)

def index_strings(data: _Buffer, offset: int, count: int) -> NDArray[np.uint64]: ...

# ---- floor A: packed layouts (layout.pxi)

def packed_bytes(format: str, rows: int, k: int) -> int: ...
def pack(
    format: str, k: int, source: _Buffer, order: NDArray[np.int64], out: memoryview | NDArray[np.uint8]
) -> None: ...
def unpack_row(format: str, k: int, panels: _Buffer, row: int) -> NDArray[np.float32]: ...
def column_peaks(format: str, panels: _Buffer, peaks: NDArray[np.float32]) -> None: ...
def row_scales(
    format: str, panels: _Buffer, s: NDArray[np.float32], inv: NDArray[np.float32], scale: NDArray[np.float32]
) -> None: ...

# ---- floor B: kernels (registry.pxi)

class _Tier(TypedDict):
    name: str
    built: bool
    supported: bool

class _Kernel(TypedDict):
    name: str
    tier: str
    mr: int
    nr: int
    slot: int
    chosen: bool
    workers: list[Literal["core", "sme"]]

def tiers() -> list[_Tier]: ...
def kernels(use: Sequence[str] | None = None) -> list[_Kernel]: ...

# ---- floor D: KV pages (kv.pxi)

class KvPool:
    def __init__(self, *, layers: int, heads: int, head_dim: int, dtype: str, pages: int) -> None: ...
    @property
    def total(self) -> int: ...
    @property
    def free(self) -> int: ...
    @property
    def page_bytes(self) -> int: ...
    def alloc(self) -> int: ...
    def hold(self, page: int, /) -> None: ...
    def release(self, page: int, /) -> None: ...

# ---- floor E: sampling (sample.pxi)

def sample(
    logits: NDArray[np.float32],
    *,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
    presence_penalty: float = 0.0,
    frequency_penalty: float = 0.0,
    recent: NDArray[np.int32] | None = None,
    answer: int | None = None,
    bias_ids: NDArray[np.int32] | None = None,
    bias_values: NDArray[np.float32] | None = None,
    seed: int = 0,
    draw: int = 0,
    tiers: Sequence[str] | None = None,
) -> int: ...
def argmax(logits: NDArray[np.float32]) -> int: ...
def log_softmax_at(logits: NDArray[np.float32], token: int, *, tiers: Sequence[str] | None = None) -> float: ...
def philox(key: int, counter: int) -> tuple[int, int, int, int]: ...

# ---- floor F: programs (program.pxi)

_Linear = tuple[int, str, int, int, int, int]  # address, format, k, rows, addresses of inv and scale
_Act = tuple[int, int, int, int, int, int, int, int, int, int, int, int, tuple[int, ...]]  # see Program

def attention_partial_bytes(
    *, heads: int, kv_heads: int, head_dim: int, workers: int, max_spans: int, max_blocks: int
) -> int: ...

class Program:
    matrix_rows: int
    def __init__(
        self,
        pool: Pool,
        kv: KvPool,
        *,
        tiers: Sequence[str],
        arena_bytes: int,
        max_tokens: int,
        context: int,
        vocab: int,
        heads: int,
        kv_heads: int,
        head_dim: int,
        d_model: int,
        owner: Any,
        private_units: bool = False,
    ) -> None: ...
    def add_embed(self, table: _Linear, x_at: int, cos_at: int, sin_at: int, inv_freq: Sequence[float]) -> None: ...
    def add_norm(self, weight: int, eps: float, x_at: int, out: _Act, gather: bool) -> None: ...
    def add_qkv(
        self,
        linear: Sequence[_Linear],
        act: _Act,
        q_at: int,
        cos_at: int,
        sin_at: int,
        layer: int,
        head_dim: int,
        q_scale: float,
    ) -> None: ...
    def add_attention(self, q_at: int, out: _Act, layer: int, heads: tuple[int, int, int], partial_at: int) -> None: ...
    def add_project(self, linear: _Linear, act: _Act, x_at: int) -> None: ...
    def add_gate_up(self, gate: _Linear, up: _Linear, act: _Act, out: _Act) -> None: ...
    def add_logits(self, linear: _Linear, act: _Act) -> None: ...
    def add_observe(self, act: _Act, peaks: int) -> None: ...
    def run(
        self,
        ids: NDArray[np.int32],
        positions: NDArray[np.int32],
        spans: NDArray[np.int32],
        pages: NDArray[np.int32],
        logit_rows: NDArray[np.int32],
        logits: NDArray[np.float32],
        rowwise: int = 0,
    ) -> None: ...
    def cancel(self) -> None: ...
    def counts(self) -> dict[str, int]: ...
    def seconds(self) -> dict[str, float]: ...

# probe.pxi

def probe_read_bandwidth(threads: int, nbytes: int) -> float: ...
def probe_int8_peak(threads: int) -> float: ...

class _SelfTest(TypedDict):
    trust: Literal["right", "wrong bits", "trapped", "timed out", "untested"]
    kernel: str | None
    signal: int | None
    cpu: int | None
    svl: int | None  # bytes
    calls: int
    interruptions: int
    seconds: float

def selftest(tier: str, *, limit_ms: int = 5000) -> _SelfTest: ...
