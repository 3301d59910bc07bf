// SPDX-License-Identifier: Apache-2.0
// Eight k of eight tokens times eight k of eight rows: four loads and eight zips, which put a row's two quads side by
// side, for 16 SMMLA. Results lie two tokens by two rows until the end.
#include "kernel/gemm/gemm_r_neon.h"
#include "kernel/simd/dot_neon.h"

enum { TOKENS = 8, PAIRS = 4 };

// Two neighbouring quads of eight tokens or rows as four pairs of them.
SP_TEMPLATE void load_pairs(int32x4_t pair[PAIRS], const int8_t *at) {
    const int32x4_t even0 = vreinterpretq_s32_s8(vld1q_s8(at)), even1 = vreinterpretq_s32_s8(vld1q_s8(at + 16));
    const int32x4_t odd0 = vreinterpretq_s32_s8(vld1q_s8(at + 64)), odd1 = vreinterpretq_s32_s8(vld1q_s8(at + 80));
    pair[0] = vzip1q_s32(even0, odd0), pair[1] = vzip2q_s32(even0, odd0);
    pair[2] = vzip1q_s32(even1, odd1), pair[3] = vzip2q_s32(even1, odd1);
}

SP_TEMPLATE void tile(int32x4_t dot[][2], const int8_t *a, const int8_t *w, size_t k) {
    int32x4_t acc[PAIRS][PAIRS];
    SP_UNROLL
    for (int t = 0; t < PAIRS; t++) {
        SP_UNROLL
        for (int r = 0; r < PAIRS; r++) acc[t][r] = vdupq_n_s32(0);
    }
    for (size_t j = 0; j < k; j += 32) {
        SP_UNROLL
        for (int q = 0; q < 4; q++, a += 128, w += 128) {
            int32x4_t x[PAIRS], v[PAIRS];
            load_pairs(x, a), load_pairs(v, w);
            SP_UNROLL
            for (int t = 0; t < PAIRS; t++) {
                SP_UNROLL
                for (int r = 0; r < PAIRS; r++) acc[t][r] = sp_smmla(acc[t][r], x[t], v[r]);
            }
        }
    }
    SP_UNROLL
    for (int t = 0; t < PAIRS; t++) {
        SP_UNROLL
        for (int half = 0; half < 2; half++) {
            const int64x2_t low = vreinterpretq_s64_s32(acc[t][2 * half]);
            const int64x2_t high = vreinterpretq_s64_s32(acc[t][2 * half + 1]);
            dot[2 * t][half] = vreinterpretq_s32_s64(vzip1q_s64(low, high));
            dot[2 * t + 1][half] = vreinterpretq_s32_s64(vzip2q_s64(low, high));
        }
    }
}

void sp_gemm_f32_q8r_q8r_8x8_neon_i8mm(const sp_gemm_r_args *args) { sp_gemm_r_neon(args, TOKENS, tile); }
