// SPDX-License-Identifier: Apache-2.0
// ARMv8.0 multiplies bytes to int16: two products of at most 127 * 127 fit, then they go to int32 in pairs. Each row
// has two lanes in the accumulators, which are added at the end.
#include "kernel/gemm/gemm_r_neon.h"
#include "kernel/simd/dot_neon.h"

enum { TOKENS = 4 };

SP_TEMPLATE void tile(int32x4_t dot[][2], const int8_t *a, const int8_t *w, size_t k) {
    int32x4_t sum[TOKENS][4];
    SP_UNROLL
    for (int t = 0; t < TOKENS; t++) {
        SP_UNROLL
        for (int r = 0; r < 4; r++) sum[t][r] = vdupq_n_s32(0);
    }
    for (size_t j = 0; j < k; j += 8, a += 128, w += 128) {
        const int8x16_t even[2] = {vld1q_s8(w), vld1q_s8(w + 16)}, odd[2] = {vld1q_s8(w + 64), vld1q_s8(w + 80)};
        SP_UNROLL
        for (int t = 0; t < TOKENS; t++) {
            const int8x16_t x = sp_quad_bcast_neon(a + 4 * t), y = sp_quad_bcast_neon(a + 64 + 4 * t);
            SP_UNROLL
            for (int r = 0; r < 2; r++) {
                const int16x8_t low = vmull_s8(vget_low_s8(even[r]), vget_low_s8(x)), high = vmull_high_s8(even[r], x);
                sum[t][2 * r] = vpadalq_s16(sum[t][2 * r], vmlal_s8(low, vget_low_s8(odd[r]), vget_low_s8(y)));
                sum[t][2 * r + 1] = vpadalq_s16(sum[t][2 * r + 1], vmlal_high_s8(high, odd[r], y));
            }
        }
    }
    SP_UNROLL
    for (int t = 0; t < TOKENS; t++) {
        dot[t][0] = vpaddq_s32(sum[t][0], sum[t][1]);
        dot[t][1] = vpaddq_s32(sum[t][2], sum[t][3]);
    }
}

void sp_gemm_f32_q8r_q8r_4x8_neon(const sp_gemm_r_args *args) { sp_gemm_r_neon(args, TOKENS, tile); }
