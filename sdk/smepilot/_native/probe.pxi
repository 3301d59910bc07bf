# SPDX-License-Identifier: Apache-2.0
# The limits of this machine, measured: what a roofline is made of.

cdef extern from "probe/probe.h":
    sp_status sp_probe_read_bandwidth(unsigned threads, size_t bytes, double *bytes_per_second) nogil
    sp_status sp_probe_int8_peak(unsigned threads, sp_tier tier, double *ops_per_second) nogil


def probe_read_bandwidth(unsigned threads, size_t nbytes) -> float:
    """Bytes per second that `threads` threads read together from `nbytes` of memory; take several times the caches."""
    cdef double rate = 0.0
    cdef sp_status status
    with nogil:
        status = sp_probe_read_bandwidth(threads, nbytes, &rate)
    check(status, f"read bandwidth of {threads} threads over {nbytes} bytes")
    return rate


def probe_int8_peak(unsigned threads) -> float:
    """Operations per second (a multiply-add counts as two) on int8 in registers, of the best tier this CPU runs."""
    cdef sp_cpu cpu
    sp_cpu_detect(&cpu)
    cdef uint32_t tiers = sp_kernel_tiers_built() & sp_kernel_tiers_supported(&cpu)
    cdef int best = max(i for i in range(SP_TIER_COUNT) if i == 0 or tiers >> i & 1)
    cdef double rate = 0.0
    cdef sp_status status
    with nogil:
        status = sp_probe_int8_peak(threads, <sp_tier>best, &rate)
    check(status, f"integer peak of {threads} threads")
    return rate
