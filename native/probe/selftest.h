// SPDX-License-Identifier: Apache-2.0
// Are the matrix kernels to be trusted here? What a processor advertises may trap (virtual machines, phones whose
// system keeps the unit for itself) or give wrong bits now and then (firmware that loses the unit's state on a switch).
//
// So the registered kernels themselves compute fixed products (probe/cases.h), against the scalar reference, bit for
// bit: in child processes, since a trap must hurt nobody; on each core that workers may use; two children on a core at
// a time, which push each other off it, and interrupted by signals in the middle of kernels. At the vector length that
// workers have. Ten milliseconds or so on the machines it is for; whoever asks keeps the answer.
#pragma once

#include <stdint.h>

#include "base/status.h"
#include "kernel/kernel.h"

typedef enum sp_trust {
    SP_TRUST_RIGHT,
    SP_TRUST_WRONG,  // computed other bits than the reference, or wrote where it should not
    SP_TRUST_TRAPPED,  // died of a signal
    SP_TRUST_LATE,  // did not come back in time: a machine under load, or a hang
    SP_TRUST_UNTESTED,  // no child could be made, or there is no kernel
} sp_trust;

const char *sp_trust_name(sp_trust trust);

typedef struct sp_selftest {
    sp_trust trust;
    const char *kernel;  // where it failed; NULL before the first kernel, or where it did not fail
    int signal;  // SP_TRUST_TRAPPED
    int32_t cpu;  // … and on which logical CPU; -1: unknown
    uint32_t svl;  // bytes of a streaming vector in the children; 0 without SME
    uint64_t calls;  // of kernels, compared with the reference
    uint64_t interruptions;  // signals that arrived meanwhile
    uint64_t ns;  // that the whole test took
} sp_selftest;

enum { SP_SELFTEST_LIMIT_MS = 5000 };  // hundreds of times what a machine takes, enough for an emulator of one

// The kernels of exactly this tier; slots without one are NULL.
void sp_selftest_kernels(sp_kernel_set *set, sp_tier tier);

// Tests the kernels of `set`, leaving out NULL slots and those that no case covers. SP_ERR_MEMORY; else `out` is the
// answer.
sp_status sp_selftest_run(sp_selftest *out, const sp_kernel_set *set, uint64_t limit_ns);
