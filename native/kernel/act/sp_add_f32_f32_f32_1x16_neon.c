// SPDX-License-Identifier: Apache-2.0
#include "kernel/declare.h"
#include "kernel/simd/neon.h"

void sp_add_f32_f32_f32_1x16_neon(float *x, const float *y, size_t n) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        sp_f32x16 sum = sp_load16_neon(x + i);
        const sp_f32x16 more = sp_load16_neon(y + i);
        SP_UNROLL
        for (int j = 0; j < 4; j++) sum.q[j] = vaddq_f32(sum.q[j], more.q[j]);
        sp_store16_neon(x + i, sum);
    }
    for (; i < n; i += 4) vst1q_f32(x + i, vaddq_f32(vld1q_f32(x + i), vld1q_f32(y + i)));
}
