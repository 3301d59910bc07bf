# SPDX-License-Identifier: Apache-2.0
# The thread pool as an object: its lifetime and what it reports. Runs go through native programs.

from time import sleep as _sleep

from libc.stdint cimport int32_t, uint32_t, uint64_t

cdef extern from "thread/pool.h":
    ctypedef enum sp_kind:
        SP_KIND_CORE
        SP_KIND_SME
        SP_KIND_COUNT
    ctypedef enum sp_pin:
        pass
    ctypedef struct sp_pool:
        pass
    ctypedef struct sp_pool_config:
        uint32_t cores
        uint32_t sme
        uint64_t spin_ns
        uint64_t yield_ns
        uint32_t counters
        bint pin
    ctypedef struct sp_placement:
        sp_kind kind
        sp_pin pin
        int32_t cpu
        uint32_t svl
        bint started
        bint active
    enum:
        SP_POOL_WORKERS_MAX
    sp_pool_config sp_pool_config_default()
    sp_status sp_pool_create(sp_pool **out, const sp_pool_config *config) nogil
    void sp_pool_stop(sp_pool *pool) nogil
    void sp_pool_destroy(sp_pool *pool)
    uint32_t sp_pool_workers(const sp_pool *pool)
    sp_status sp_pool_reserve_scratch(sp_pool *pool, size_t bytes) nogil
    void sp_pool_counts(sp_pool *pool, uint64_t *out) nogil
    void sp_pool_placement(const sp_pool *pool, uint32_t index, sp_placement *out)
    const char *sp_pin_name(sp_pin pin)


cdef class Pool:
    """Worker threads that compute one forward pass at a time, the calling thread being one of them.

    Whoever runs programs on the pool holds a reference to it: its memory lives until the last one is gone. `close`
    ends the threads; a pass that comes later is computed by its calling thread alone, as is one in a forked child.
    """

    cdef sp_pool *ptr
    cdef readonly int counters
    cdef readonly bint closed

    def __cinit__(self, threads: int | None = None, *, matrix: int = 0, spin_us: float = 100.0, pin: bool = True,
                  counters: int = 64):
        """Starts the threads.

        Args:
            threads: Core workers, the calling thread included; None for the physical cores that the process may use.
            matrix: Workers that drive shared matrix units, beside the core workers: one for each unit.
            spin_us: Microseconds that an idle thread spins, at the ready, before it begins to yield its core.
            pin: Tie each thread but the caller to a core of its own, where there are as many.
            counters: Length of each worker's array of kernel counters.

        Raises:
            InvalidParameterError: a number is out of range.
            NativeError: the system gives no more threads.
        """
        cdef sp_pool_config config = sp_pool_config_default()
        cdef sp_status status
        if threads is not None and not 1 <= threads <= SP_POOL_WORKERS_MAX:
            raise _errors.InvalidParameterError(
                f"threads is {threads}; use 1 to {SP_POOL_WORKERS_MAX}, or None for this machine's cores")
        if not 0 <= spin_us <= 1e6:
            raise _errors.InvalidParameterError(f"spin_us is {spin_us}; use 0 to 1000000 microseconds")
        if not 0 <= matrix <= SP_POOL_WORKERS_MAX:
            raise _errors.InvalidParameterError(f"matrix is {matrix}; use 0 to {SP_POOL_WORKERS_MAX}")
        config.cores = threads or 0
        config.sme = matrix
        config.spin_ns = <uint64_t>(spin_us * 1000)
        config.pin = pin
        config.counters = self.counters = counters
        with nogil:
            status = sp_pool_create(&self.ptr, &config)
        check(status, "starting the worker threads")

    def __dealloc__(self):
        sp_pool_destroy(self.ptr)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Waits for the pass in progress and ends the threads. May be called twice."""
        with nogil:
            sp_pool_stop(self.ptr)
        self.closed = True

    @property
    def threads(self) -> int:
        """Workers, the calling thread included."""
        return sp_pool_workers(self.ptr)

    def counts(self) -> list[int]:
        """The kernel counters, added up over the workers. Waits for the pass in progress."""
        cdef uint64_t[::1] totals
        cdef Py_ssize_t n = self.counters
        if n == 0:
            return []
        import numpy

        array = numpy.zeros(n, dtype=numpy.uint64)
        totals = array
        with nogil:
            sp_pool_counts(self.ptr, &totals[0])
        return array.tolist()

    def placement(self) -> list[dict]:
        """Where the workers are: a dict for each.

        `kind` is "core" or "sme"; `cpu` the logical CPU it was to be pinned to (the first, where it may choose among the
        cores of a matrix unit), or None; `pin` what became of it: "done" (the mask was read back), "refused", "ignored"
        (accepted, not applied) or "none" (not asked for); `svl` bytes of its streaming vector, None where it runs no
        matrix kernels or has not yet; `started` whether its thread has run; `active` whether it takes part in passes.
        """
        cdef sp_placement at
        cdef uint32_t i
        cdef int patience = 200  # milliseconds that new threads have to come up
        workers = []
        for i in range(sp_pool_workers(self.ptr)):
            sp_pool_placement(self.ptr, i, &at)
            while at.active and not at.started and patience > 0:
                _sleep(0.001)
                patience -= 1
                sp_pool_placement(self.ptr, i, &at)
            workers.append({
                "index": i,
                "kind": "sme" if at.kind == SP_KIND_SME else "core",
                "cpu": at.cpu if at.cpu >= 0 else None,
                "pin": sp_pin_name(at.pin).decode(),
                "svl": at.svl or None,
                "started": bool(at.started),
                "active": bool(at.active),
            })
        return workers
