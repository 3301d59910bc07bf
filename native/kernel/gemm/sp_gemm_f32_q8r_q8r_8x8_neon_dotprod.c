// SPDX-License-Identifier: Apache-2.0
// A quad of eight tokens times a quad of eight rows: two loads for 16 SDOT.
#include "kernel/gemm/gemm_r_neon.h"
#include "kernel/simd/dot_neon.h"

enum { TOKENS = 8 };

SP_TEMPLATE void tile(int32x4_t dot[][2], const int8_t *a, const int8_t *w, size_t k) {
    SP_UNROLL
    for (int t = 0; t < TOKENS; t++) dot[t][0] = dot[t][1] = vdupq_n_s32(0);
    for (size_t j = 0; j < k; j += 32) {
        SP_UNROLL
        for (int q = 0; q < 8; q++, a += 64, w += 64) {
            const int8x16_t x[2] = {vld1q_s8(a), vld1q_s8(a + 16)}, low = vld1q_s8(w), high = vld1q_s8(w + 16);
            SP_UNROLL
            for (int t = 0; t < TOKENS; t++) {
                dot[t][0] = sp_sdot_lane(dot[t][0], low, x[t / 4], t % 4);
                dot[t][1] = sp_sdot_lane(dot[t][1], high, x[t / 4], t % 4);
            }
        }
    }
}

void sp_gemm_f32_q8r_q8r_8x8_neon_dotprod(const sp_gemm_r_args *args) { sp_gemm_r_neon(args, TOKENS, tile); }
