// SPDX-License-Identifier: Apache-2.0
// SDOT: sixteen multiply-adds each. Sixteen independent sums cover latency times throughput of every core so far (four
// pipes, four cycles). Registers that a call preserves are left alone.
#include "probe/probe.h"

enum { CHAINS = 16, OPS = 16 * 2 };

uint64_t sp_probe_int8_neon_dotprod(uint64_t rounds) {
    uint64_t left = rounds;
    __asm__ volatile("movi v30.16b, #1\n\t"
                     "movi v31.16b, #1\n\t"
                     "1:\n\t"
                     "sdot v0.4s, v30.16b, v31.16b\n\t"
                     "sdot v1.4s, v30.16b, v31.16b\n\t"
                     "sdot v2.4s, v30.16b, v31.16b\n\t"
                     "sdot v3.4s, v30.16b, v31.16b\n\t"
                     "sdot v4.4s, v30.16b, v31.16b\n\t"
                     "sdot v5.4s, v30.16b, v31.16b\n\t"
                     "sdot v6.4s, v30.16b, v31.16b\n\t"
                     "sdot v7.4s, v30.16b, v31.16b\n\t"
                     "sdot v16.4s, v30.16b, v31.16b\n\t"
                     "sdot v17.4s, v30.16b, v31.16b\n\t"
                     "sdot v18.4s, v30.16b, v31.16b\n\t"
                     "sdot v19.4s, v30.16b, v31.16b\n\t"
                     "sdot v20.4s, v30.16b, v31.16b\n\t"
                     "sdot v21.4s, v30.16b, v31.16b\n\t"
                     "sdot v22.4s, v30.16b, v31.16b\n\t"
                     "sdot v23.4s, v30.16b, v31.16b\n\t"
                     "subs %0, %0, #1\n\t"
                     "b.ne 1b"
                     : "+r"(left)
                     :
                     : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21",
                       "v22", "v23", "v30", "v31");
    return rounds * CHAINS * OPS;
}
