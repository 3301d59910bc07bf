# SPDX-License-Identifier: Apache-2.0
# The typed surface of the extension, by floor of the C engine, lowest first.

from typing import Literal, Self, TypedDict

# ---- floor A: the machine (cpu.pxi)

class _Cache(TypedDict):
    bytes: int
    sharers: int  # physical cores

class _Cluster(TypedDict):
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
    svl: int | None  # bytes
    cpus: int
    cores: int
    smt: int
    usable: int
    quota: float | None  # CPUs
    sme_units: int
    sme_private: bool
    clusters: list[_Cluster]

def cpu_info() -> _CpuInfo: ...

# ---- floor C: workers (pool.pxi)

class _Placement(TypedDict):
    index: int
    kind: Literal["core", "sme"]
    cpu: int | None
    pin: Literal["none", "done", "refused", "ignored"]
    started: bool
    active: bool

class Pool:
    counters: int
    closed: bool
    def __init__(
        self, threads: int | None = None, *, spin_us: float = 100.0, pin: bool = True, counters: int = 64
    ) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    def close(self) -> None: ...
    @property
    def threads(self) -> int: ...
    def counts(self) -> list[int]: ...
    def placement(self) -> list[_Placement]: ...
