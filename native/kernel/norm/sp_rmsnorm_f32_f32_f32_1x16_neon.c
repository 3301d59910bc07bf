// SPDX-License-Identifier: Apache-2.0
// The lanes fix the chain of additions: four registers, one step every 16 elements.
#include <math.h>

#include "kernel/declare.h"
#include "kernel/simd/neon.h"

static inline float sum_of_squares(const float *x, size_t n) {
    sp_f32x16 lanes = {{vdupq_n_f32(0.0f), vdupq_n_f32(0.0f), vdupq_n_f32(0.0f), vdupq_n_f32(0.0f)}};
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const sp_f32x16 v = sp_load16_neon(x + i);
        SP_UNROLL
        for (int j = 0; j < 4; j++) lanes.q[j] = vfmaq_f32(lanes.q[j], v.q[j], v.q[j]);
    }
    if (i < n) {
        const float32x4_t a = vld1q_f32(x + i), b = vld1q_f32(x + i + 4);
        lanes.q[0] = vfmaq_f32(lanes.q[0], a, a);
        lanes.q[1] = vfmaq_f32(lanes.q[1], b, b);
    }
    return sp_lanes_sum_neon(lanes);
}

void sp_rmsnorm_f32_f32_f32_1x16_neon(float *y, const float *x, const float *w, size_t n, float eps) {
    const float r = 1.0f / sqrtf(sum_of_squares(x, n) / (float)n + eps);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        sp_f32x16 v = sp_load16_neon(x + i);
        const sp_f32x16 by = sp_load16_neon(w + i);
        SP_UNROLL
        for (int j = 0; j < 4; j++) v.q[j] = vmulq_f32(vmulq_n_f32(v.q[j], r), by.q[j]);
        sp_store16_neon(y + i, v);
    }
    for (; i < n; i += 4) vst1q_f32(y + i, vmulq_f32(vmulq_n_f32(vld1q_f32(x + i), r), vld1q_f32(w + i)));
}
