# SPDX-License-Identifier: Apache-2.0
# The limits of this machine, measured: what a roofline is made of. And whether its matrix kernels are to be trusted.

cdef extern from "probe/probe.h":
    sp_status sp_probe_read_bandwidth(unsigned threads, size_t bytes, double *bytes_per_second) nogil
    sp_status sp_probe_int8_peak(unsigned threads, sp_tier tier, double *ops_per_second) nogil

cdef extern from "probe/selftest.h":
    ctypedef enum sp_trust:
        SP_TRUST_TRAPPED
    ctypedef struct sp_selftest:
        sp_trust trust
        const char *kernel
        int signal
        int32_t cpu
        uint32_t svl
        uint64_t calls
        uint64_t interruptions
        uint64_t ns
    enum:
        SP_SELFTEST_LIMIT_MS
    const char *sp_trust_name(sp_trust trust)
    void sp_selftest_kernels(sp_kernel_set *set, sp_tier tier)
    sp_status sp_selftest_run(sp_selftest *out, const sp_kernel_set *set, uint64_t limit_ns) nogil


def probe_read_bandwidth(unsigned threads, size_t nbytes) -> float:
    """Bytes per second that `threads` threads read together from `nbytes` of memory; take several times the caches."""
    cdef double rate = 0.0
    cdef sp_status status
    with nogil:
        status = sp_probe_read_bandwidth(threads, nbytes, &rate)
    check(status, f"read bandwidth of {threads} threads over {nbytes} bytes")
    return rate


def probe_int8_peak(unsigned threads) -> float:
    """Operations per second (a multiply-add counts as two) on int8 in registers, of the cores' best tier."""
    cdef sp_cpu cpu
    sp_cpu_detect(&cpu)
    cdef uint32_t tiers = sp_kernel_tiers_built() & sp_kernel_tiers_supported(&cpu) & ~<uint32_t>SP_TIERS_SME
    cdef int best = max(i for i in range(SP_TIER_COUNT) if i == 0 or tiers >> i & 1)
    cdef double rate = 0.0
    cdef sp_status status
    with nogil:
        status = sp_probe_int8_peak(threads, <sp_tier>best, &rate)
    check(status, f"integer peak of {threads} threads")
    return rate


def selftest(str tier, *, unsigned limit_ms=SP_SELFTEST_LIMIT_MS) -> dict:
    """Runs the matrix products of one tier in child processes and compares every bit with the scalar reference.

    The tier must be built and supported as far as the system says; what it says is what is put to the test.

    Returns a dict: `trust` is "right", "wrong bits", "trapped", "timed out" or "untested" (no child process can be made
    here). Where it is not "right": the `kernel` that failed, the `signal` it died of and the logical `cpu`, or None.
    `svl` is bytes of the streaming vector in the children, `calls` how many calls were compared, `interruptions` how
    many signals arrived meanwhile, `seconds` what all of it took.
    """
    cdef sp_selftest result
    cdef sp_kernel_set kernels
    cdef sp_status status
    cdef uint64_t limit_ns = <uint64_t>limit_ms * 1000000
    names = [each["name"] for each in tiers() if each["built"] and each["supported"]]
    if tier not in names:
        raise _errors.InvalidParameterError(f"tier {tier!r} cannot run here; use one of {', '.join(names)}")
    cdef int index = [each["name"] for each in tiers()].index(tier)
    sp_selftest_kernels(&kernels, <sp_tier>index)
    with nogil:
        status = sp_selftest_run(&result, &kernels, limit_ns)
    check(status, f"self-test of {tier}")
    return {
        "trust": sp_trust_name(result.trust).decode(),
        "kernel": result.kernel.decode() if result.kernel != NULL else None,
        "signal": result.signal if result.trust == SP_TRUST_TRAPPED and result.signal else None,
        "cpu": result.cpu if result.cpu >= 0 else None,
        "svl": result.svl or None,
        "calls": result.calls,
        "interruptions": result.interruptions,
        "seconds": result.ns / 1e9,
    }
