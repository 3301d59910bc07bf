// SPDX-License-Identifier: Apache-2.0
// bfloat16 is the upper half of a float32: a shift for the first value of a pair, a mask for the second.
#include "kernel/declare.h"
#include "kernel/simd/neon.h"

void sp_expand_f32_bf16p16x2_1x16_neon(float *dst, const uint16_t *src, size_t k) {
    const uint32x4_t mask = vdupq_n_u32(0xffff0000u);
    for (size_t i = 0; i < k; i += 2) {
        uint32x4_t words[4];
        SP_UNROLL
        for (size_t r = 0; r < 4; r++) words[r] = vreinterpretq_u32_u16(vld1q_u16(src + i * 16 + r * 8));
        SP_UNROLL
        for (size_t r = 0; r < 4; r++) {
            vst1q_f32(dst + i * 16 + r * 4, vreinterpretq_f32_u32(vshlq_n_u32(words[r], 16)));
            vst1q_f32(dst + i * 16 + 16 + r * 4, vreinterpretq_f32_u32(vandq_u32(words[r], mask)));
        }
    }
}
