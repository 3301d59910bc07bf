// SPDX-License-Identifier: Apache-2.0
// What the NEON kernels share: sixteen floats as four registers, exp2, the tree of a row sum, ends of rows.
// ARMv8.0 throughout. Included by `_neon*.c` files alone.
//
// Sixteen floats a step: they are the 16 lanes of every row sum, and four independent chains keep an in-order core busy
// while each waits for its multiply-add. Steps load all before they store, so that results may overwrite operands.
//
// Where Arm is not x86: FMAX and FMIN give NaN if either operand is NaN, and order the zeros; FMAXNM passes over a
// quiet NaN; conversions to integer saturate, and make 0 of NaN. families.h's max(a, b) is a comparison and a
// selection.
#pragma once

#include <arm_neon.h>
#include <stddef.h>

#include "kernel/softmax/exp2.h"
#include "kernel/template.h"

// Sixteen floats; element i is q[i / 4][i % 4].
typedef struct sp_f32x16 {
    float32x4_t q[4];
} sp_f32x16;

SP_TEMPLATE sp_f32x16 sp_load16_neon(const float *x) {
    return (sp_f32x16){{vld1q_f32(x), vld1q_f32(x + 4), vld1q_f32(x + 8), vld1q_f32(x + 12)}};
}

SP_TEMPLATE void sp_store16_neon(float *y, sp_f32x16 v) {
    SP_UNROLL
    for (int i = 0; i < 4; i++) vst1q_f32(y + 4 * i, v.q[i]);
}

// The first `count` (1..4) of four floats, the others +0.
SP_TEMPLATE float32x4_t sp_load_some_neon(const float *x, size_t count) {
    if (count == 4) return vld1q_f32(x);
    float32x4_t v = vsetq_lane_f32(x[0], vdupq_n_f32(0.0f), 0);
    if (count > 1) v = vld1q_lane_f32(x + 1, v, 1);
    if (count > 2) v = vld1q_lane_f32(x + 2, v, 2);
    return v;
}

SP_TEMPLATE void sp_store_some_neon(float *y, float32x4_t v, size_t count) {
    if (count == 4) {
        vst1q_f32(y, v);
        return;
    }
    vst1q_lane_f32(y, v, 0);
    if (count > 1) vst1q_lane_f32(y + 1, v, 1);
    if (count > 2) vst1q_lane_f32(y + 2, v, 2);
}

// 2^x for x <= 127 or NaN (kernel/softmax/exp2.h). A NaN has n = 0 as an integer, so that it stays a NaN; what lies
// below the range saturates, and is cleared.
SP_TEMPLATE float32x4_t sp_exp2_small_neon(float32x4_t x) {
    const uint32x4_t below = vcltq_f32(x, vdupq_n_f32(SP_EXP2_MIN));
    const float32x4_t f = vsubq_f32(x, vrndnq_f32(x));
    float32x4_t p = vfmaq_f32(vdupq_n_f32(SP_EXP2_C5), f, vdupq_n_f32(SP_EXP2_C6));
    p = vfmaq_f32(vdupq_n_f32(SP_EXP2_C4), p, f);
    p = vfmaq_f32(vdupq_n_f32(SP_EXP2_C3), p, f);
    p = vfmaq_f32(vdupq_n_f32(SP_EXP2_C2), p, f);
    p = vfmaq_f32(vdupq_n_f32(SP_EXP2_C1), p, f);
    p = vfmaq_f32(vdupq_n_f32(1.0f), p, f);
    const int32x4_t bits = vaddq_s32(vreinterpretq_s32_f32(p), vshlq_n_s32(vcvtnq_s32_f32(x), 23));
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_s32(bits), below));
}

// 2^x for any x. FMIN keeps a NaN.
SP_TEMPLATE float32x4_t sp_exp2_neon(float32x4_t x) {
    return sp_exp2_small_neon(vminq_f32(x, vdupq_n_f32(SP_EXP2_MAX)));
}

// g / (1 + exp2(-g * log2e)).
SP_TEMPLATE float32x4_t sp_silu_neon(float32x4_t g) {
    const float32x4_t e = sp_exp2_neon(vmulq_f32(g, vdupq_n_f32(-SP_LOG2E)));
    return vdivq_f32(g, vaddq_f32(vdupq_n_f32(1.0f), e));
}

// The tree over 16 lanes: 8 apart, 4 apart, 2 apart, 1 apart. FADDV's pairs would be another tree.
SP_TEMPLATE float sp_lanes_sum_neon(sp_f32x16 lanes) {
    const float32x4_t a = vaddq_f32(vaddq_f32(lanes.q[0], lanes.q[2]), vaddq_f32(lanes.q[1], lanes.q[3]));
    return vpadds_f32(vadd_f32(vget_low_f32(a), vget_high_f32(a)));
}
