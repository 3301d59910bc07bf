// SPDX-License-Identifier: Apache-2.0
// Without dot products a multiply-add of int8 takes three instructions for sixteen: SMULL and SMLAL2 (two products to
// one int16, which holds 2 * 127 * 127), SADALP (pairs to int32). Eight sums, as many independent temporaries.
#include "probe/probe.h"

enum { CHAINS = 8, OPS = 16 * 2 };

uint64_t sp_probe_int8_neon(uint64_t rounds) {
    uint64_t left = rounds;
    __asm__ volatile("movi v30.16b, #1\n\t"
                     "movi v31.16b, #1\n\t"
                     "1:\n\t"
                     "smull v16.8h, v30.8b, v31.8b\n\t"
                     "smull v17.8h, v30.8b, v31.8b\n\t"
                     "smull v18.8h, v30.8b, v31.8b\n\t"
                     "smull v19.8h, v30.8b, v31.8b\n\t"
                     "smull v20.8h, v30.8b, v31.8b\n\t"
                     "smull v21.8h, v30.8b, v31.8b\n\t"
                     "smull v22.8h, v30.8b, v31.8b\n\t"
                     "smull v23.8h, v30.8b, v31.8b\n\t"
                     "smlal2 v16.8h, v30.16b, v31.16b\n\t"
                     "smlal2 v17.8h, v30.16b, v31.16b\n\t"
                     "smlal2 v18.8h, v30.16b, v31.16b\n\t"
                     "smlal2 v19.8h, v30.16b, v31.16b\n\t"
                     "smlal2 v20.8h, v30.16b, v31.16b\n\t"
                     "smlal2 v21.8h, v30.16b, v31.16b\n\t"
                     "smlal2 v22.8h, v30.16b, v31.16b\n\t"
                     "smlal2 v23.8h, v30.16b, v31.16b\n\t"
                     "sadalp v0.4s, v16.8h\n\t"
                     "sadalp v1.4s, v17.8h\n\t"
                     "sadalp v2.4s, v18.8h\n\t"
                     "sadalp v3.4s, v19.8h\n\t"
                     "sadalp v4.4s, v20.8h\n\t"
                     "sadalp v5.4s, v21.8h\n\t"
                     "sadalp v6.4s, v22.8h\n\t"
                     "sadalp v7.4s, v23.8h\n\t"
                     "subs %0, %0, #1\n\t"
                     "b.ne 1b"
                     : "+r"(left)
                     :
                     : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21",
                       "v22", "v23", "v30", "v31");
    return rounds * CHAINS * OPS;
}
