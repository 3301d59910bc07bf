// SPDX-License-Identifier: Apache-2.0
// VPDPBUSD on 512-bit registers: 64 multiply-adds each. Twelve independent sums cover latency times throughput of
// every core so far; assembly keeps the compiler from folding a loop whose operands never change.
#include "probe/probe.h"

enum { CHAINS = 12, OPS = 64 * 2 };

uint64_t sp_probe_int8_avx512(uint64_t rounds) {
    uint64_t left = rounds;
    __asm__ volatile("vpxord %%zmm30, %%zmm30, %%zmm30\n\t"
                     "vpxord %%zmm31, %%zmm31, %%zmm31\n\t"
                     "1:\n\t"
                     "vpdpbusd %%zmm31, %%zmm30, %%zmm0\n\t"
                     "vpdpbusd %%zmm31, %%zmm30, %%zmm1\n\t"
                     "vpdpbusd %%zmm31, %%zmm30, %%zmm2\n\t"
                     "vpdpbusd %%zmm31, %%zmm30, %%zmm3\n\t"
                     "vpdpbusd %%zmm31, %%zmm30, %%zmm4\n\t"
                     "vpdpbusd %%zmm31, %%zmm30, %%zmm5\n\t"
                     "vpdpbusd %%zmm31, %%zmm30, %%zmm6\n\t"
                     "vpdpbusd %%zmm31, %%zmm30, %%zmm7\n\t"
                     "vpdpbusd %%zmm31, %%zmm30, %%zmm8\n\t"
                     "vpdpbusd %%zmm31, %%zmm30, %%zmm9\n\t"
                     "vpdpbusd %%zmm31, %%zmm30, %%zmm10\n\t"
                     "vpdpbusd %%zmm31, %%zmm30, %%zmm11\n\t"
                     "decq %0\n\t"
                     "jnz 1b"
                     : "+r"(left)
                     :
                     : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                       "xmm11", "xmm30", "xmm31");
    return rounds * CHAINS * OPS;
}
