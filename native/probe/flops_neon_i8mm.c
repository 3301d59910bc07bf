// SPDX-License-Identifier: Apache-2.0
// SMMLA, a product of 2 x 8 by 8 x 2: thirty-two multiply-adds each, in sixteen independent sums.
#include "probe/probe.h"

enum { CHAINS = 16, OPS = 32 * 2 };

uint64_t sp_probe_int8_neon_i8mm(uint64_t rounds) {
    uint64_t left = rounds;
    __asm__ volatile("movi v30.16b, #1\n\t"
                     "movi v31.16b, #1\n\t"
                     "1:\n\t"
                     "smmla v0.4s, v30.16b, v31.16b\n\t"
                     "smmla v1.4s, v30.16b, v31.16b\n\t"
                     "smmla v2.4s, v30.16b, v31.16b\n\t"
                     "smmla v3.4s, v30.16b, v31.16b\n\t"
                     "smmla v4.4s, v30.16b, v31.16b\n\t"
                     "smmla v5.4s, v30.16b, v31.16b\n\t"
                     "smmla v6.4s, v30.16b, v31.16b\n\t"
                     "smmla v7.4s, v30.16b, v31.16b\n\t"
                     "smmla v16.4s, v30.16b, v31.16b\n\t"
                     "smmla v17.4s, v30.16b, v31.16b\n\t"
                     "smmla v18.4s, v30.16b, v31.16b\n\t"
                     "smmla v19.4s, v30.16b, v31.16b\n\t"
                     "smmla v20.4s, v30.16b, v31.16b\n\t"
                     "smmla v21.4s, v30.16b, v31.16b\n\t"
                     "smmla v22.4s, v30.16b, v31.16b\n\t"
                     "smmla v23.4s, v30.16b, v31.16b\n\t"
                     "subs %0, %0, #1\n\t"
                     "b.ne 1b"
                     : "+r"(left)
                     :
                     : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21",
                       "v22", "v23", "v30", "v31");
    return rounds * CHAINS * OPS;
}
