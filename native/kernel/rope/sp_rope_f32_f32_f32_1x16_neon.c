// SPDX-License-Identifier: Apache-2.0
// Sixteen pairs a step, four at the end of a row: half is a multiple of 4.
#include "kernel/declare.h"
#include "kernel/simd/neon.h"

// Turns four pairs in place. FMLS would give the first with the sign of an exact zero turned round.
SP_TEMPLATE void turn(float32x4_t *a, float32x4_t *b, float32x4_t cos, float32x4_t sin, float scale) {
    const float32x4_t first = vfmaq_f32(vnegq_f32(vmulq_f32(*b, sin)), *a, cos);
    const float32x4_t second = vfmaq_f32(vmulq_f32(*a, sin), *b, cos);
    *a = vmulq_n_f32(first, scale);
    *b = vmulq_n_f32(second, scale);
}

void sp_rope_f32_f32_f32_1x16_neon(float *y, const float *x, const float *c, const float *s, size_t half, float scale) {
    size_t i = 0;
    for (; i + 16 <= half; i += 16) {
        sp_f32x16 a = sp_load16_neon(x + i), b = sp_load16_neon(x + i + half);
        const sp_f32x16 cos = sp_load16_neon(c + i), sin = sp_load16_neon(s + i);
        SP_UNROLL
        for (int j = 0; j < 4; j++) turn(&a.q[j], &b.q[j], cos.q[j], sin.q[j], scale);
        sp_store16_neon(y + i, a);
        sp_store16_neon(y + i + half, b);
    }
    for (; i < half; i += 4) {
        float32x4_t a = vld1q_f32(x + i), b = vld1q_f32(x + i + half);
        turn(&a, &b, vld1q_f32(c + i), vld1q_f32(s + i), scale);
        vst1q_f32(y + i, a);
        vst1q_f32(y + i + half, b);
    }
}
