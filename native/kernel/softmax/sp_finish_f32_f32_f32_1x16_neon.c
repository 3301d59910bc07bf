// SPDX-License-Identifier: Apache-2.0
#include "kernel/declare.h"
#include "kernel/simd/neon.h"

SP_TEMPLATE float32x4_t finish(float32x4_t o, float32x4_t l) { return vaddq_f32(vdivq_f32(o, l), vdupq_n_f32(0.0f)); }

void sp_finish_f32_f32_f32_1x16_neon(float *y, const float *o, float l, size_t d) {
    const float32x4_t by = vdupq_n_f32(l);
    size_t i = 0;
    for (; i + 16 <= d; i += 16) {
        sp_f32x16 v = sp_load16_neon(o + i);
        SP_UNROLL
        for (int j = 0; j < 4; j++) v.q[j] = finish(v.q[j], by);
        sp_store16_neon(y + i, v);
    }
    for (; i < d; i += 4) vst1q_f32(y + i, finish(vld1q_f32(o + i), by));
}
