// SPDX-License-Identifier: Apache-2.0
#include "kernel/declare.h"
#include "kernel/simd/neon.h"

void sp_swiglu_f32_f32_f32_1x16_neon(float *y, const float *g, const float *u, size_t n) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        sp_f32x16 gate = sp_load16_neon(g + i);
        const sp_f32x16 up = sp_load16_neon(u + i);
        SP_UNROLL
        for (int j = 0; j < 4; j++) gate.q[j] = vmulq_f32(sp_silu_neon(gate.q[j]), up.q[j]);
        sp_store16_neon(y + i, gate);
    }
    for (; i < n; i += 4) vst1q_f32(y + i, vmulq_f32(sp_silu_neon(vld1q_f32(g + i)), vld1q_f32(u + i)));
}
