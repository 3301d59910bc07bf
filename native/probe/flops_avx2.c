// SPDX-License-Identifier: Apache-2.0
// Without VNNI a multiply-add of int8 takes three instructions: VPMADDUBSW (pairs to int16), VPMADDWD by ones (pairs
// to int32), VPADDD: 32 multiply-adds for the three. Four chains of independent temporaries.
#include "probe/probe.h"

enum { CHAINS = 4, OPS = 32 * 2 };

uint64_t sp_probe_int8_avx2(uint64_t rounds) {
    uint64_t left = rounds;
    __asm__ volatile("vpxor %%ymm12, %%ymm12, %%ymm12\n\t"
                     "vpxor %%ymm13, %%ymm13, %%ymm13\n\t"
                     "vpxor %%ymm14, %%ymm14, %%ymm14\n\t"
                     "1:\n\t"
                     "vpmaddubsw %%ymm13, %%ymm12, %%ymm4\n\t"
                     "vpmaddubsw %%ymm13, %%ymm12, %%ymm5\n\t"
                     "vpmaddubsw %%ymm13, %%ymm12, %%ymm6\n\t"
                     "vpmaddubsw %%ymm13, %%ymm12, %%ymm7\n\t"
                     "vpmaddwd %%ymm14, %%ymm4, %%ymm4\n\t"
                     "vpmaddwd %%ymm14, %%ymm5, %%ymm5\n\t"
                     "vpmaddwd %%ymm14, %%ymm6, %%ymm6\n\t"
                     "vpmaddwd %%ymm14, %%ymm7, %%ymm7\n\t"
                     "vpaddd %%ymm4, %%ymm0, %%ymm0\n\t"
                     "vpaddd %%ymm5, %%ymm1, %%ymm1\n\t"
                     "vpaddd %%ymm6, %%ymm2, %%ymm2\n\t"
                     "vpaddd %%ymm7, %%ymm3, %%ymm3\n\t"
                     "decq %0\n\t"
                     "jnz 1b"
                     : "+r"(left)
                     :
                     : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm12", "xmm13", "xmm14");
    return rounds * CHAINS * OPS;
}
