// SPDX-License-Identifier: Apache-2.0
#include "cpu/vector.h"

#include "base/check.h"
#include "cpu/features.h"

#ifdef __linux__
#include <sys/prctl.h>

// The kernel's numbers, which older headers lack. A length is answered and set together with flags above it.
#ifndef PR_SME_SET_VL
#define PR_SME_SET_VL 63
#define PR_SME_GET_VL 64
#endif
enum { LENGTH = 0xffff, INHERIT = 1 << 17 };  // INHERIT: a program that this one starts keeps the length

static void set(int state, uint32_t bytes) {
    (void)prctl(PR_SME_SET_VL, (unsigned long)bytes | (unsigned long)(state & INHERIT), 0, 0, 0);  // a wish
}

static uint32_t length_of(int state) { return state > 0 && sp_svl_valid(state & LENGTH) ? state & LENGTH : 0; }

uint32_t sp_svl(void) { return length_of(prctl(PR_SME_GET_VL, 0, 0, 0, 0)); }

uint32_t sp_svl_raise(void) {
    int state = prctl(PR_SME_GET_VL, 0, 0, 0, 0);
    uint32_t before = length_of(state);
    // The kernel takes the longest that the machine has and that is not longer than asked for.
    if (before > 0 && before < SP_SVL_WANTED) set(state, SP_SVL_WANTED);
    return before;
}

void sp_svl_restore(uint32_t bytes) {
    int state = prctl(PR_SME_GET_VL, 0, 0, 0, 0);
    if (bytes > 0 && length_of(state) > 0 && length_of(state) != bytes) set(state, bytes);
}
#else
uint32_t sp_svl(void) {
    sp_cpu cpu;
    sp_cpu_detect(&cpu);
    return cpu.svl;
}

uint32_t sp_svl_raise(void) { return sp_svl(); }

void sp_svl_restore(uint32_t bytes) { SP_UNUSED(bytes); }
#endif
