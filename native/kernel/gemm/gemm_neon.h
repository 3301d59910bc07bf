// SPDX-License-Identifier: Apache-2.0
// What the NEON matrix products share: operations by lane, and what a group of 32 needs besides its dot products.
//
// A block of a quantised product is some tokens by some vectors of four rows. What belongs to tokens is loaded as
// vectors of tokens and used by lane; a ragged end is the last four of them, which overlap what came before, so that
// nothing is read beyond the tokens.
#pragma once

#include <arm_neon.h>

#include "kernel/gemm/gemm.h"

enum {
    SP_MOST_TOKENS = 12,  // of a block
    SP_TOKEN_VECTORS = 3,
    SP_ROW_VECTORS = 4,  // of a panel
};

// Intrinsics take a lane as a literal; these take one that is a constant once loops are unrolled.
#define SP_BY_LANE(lane, call) ((lane) == 0 ? call(0) : (lane) == 1 ? call(1) : (lane) == 2 ? call(2) : call(3))

SP_TEMPLATE float32x4_t sp_mul_lane_neon(float32x4_t x, float32x4_t v, const int lane) {
#define SP_CALL_LANE(i) vmulq_laneq_f32(x, v, i)
    return SP_BY_LANE(lane, SP_CALL_LANE);
#undef SP_CALL_LANE
}

// acc + x * v[lane], fused.
SP_TEMPLATE float32x4_t sp_fma_lane_neon(float32x4_t acc, float32x4_t x, float32x4_t v, const int lane) {
#define SP_CALL_LANE(i) vfmaq_laneq_f32(acc, x, v, i)
    return SP_BY_LANE(lane, SP_CALL_LANE);
#undef SP_CALL_LANE
}

SP_TEMPLATE int32x4_t sp_dup_lane_neon(int32x4_t v, const int lane) {
#define SP_CALL_LANE(i) vdupq_laneq_s32(v, i)
    return SP_BY_LANE(lane, SP_CALL_LANE);
#undef SP_CALL_LANE
}

// The lane of token t in vector t / 4, of `tokens`.
SP_TEMPLATE int sp_token_lane(const int tokens, const int t) {
    return t / 4 < tokens / 4 || tokens < 4 ? t % 4 : t - (tokens - 4);
}

// One value of each token. Of eight `among` more, a load that can step on by a register takes both vectors.
SP_TEMPLATE void sp_load_tokens_f32(float32x4_t v[SP_TOKEN_VECTORS], const float *p, const int tokens,
                                    const bool among) {
    if (among && tokens == 8) {
        const float32x4x2_t both = vld1q_f32_x2(p);
        v[0] = both.val[0], v[1] = both.val[1];
        return;
    }
    SP_UNROLL
    for (int i = 0; i < tokens / 4; i++) v[i] = vld1q_f32(p + 4 * i);
    if (tokens > 4 && tokens % 4) v[tokens / 4] = vld1q_f32(p + tokens - 4);
    if (tokens == 1) v[0] = vld1q_dup_f32(p);
    if (tokens == 2 || tokens == 3) v[0] = vcombine_f32(vld1_f32(p), vld1_f32(p));
    if (tokens == 3) v[0] = vld1q_lane_f32(p + 2, v[0], 2);
}

SP_TEMPLATE void sp_load_tokens_s32(int32x4_t v[SP_TOKEN_VECTORS], const int32_t *p, const int tokens,
                                    const bool among) {
    if (among && tokens == 8) {
        const int32x4x2_t both = vld1q_s32_x2(p);
        v[0] = both.val[0], v[1] = both.val[1];
        return;
    }
    SP_UNROLL
    for (int i = 0; i < tokens / 4; i++) v[i] = vld1q_s32(p + 4 * i);
    if (tokens > 4 && tokens % 4) v[tokens / 4] = vld1q_s32(p + tokens - 4);
    if (tokens == 1) v[0] = vld1q_dup_s32(p);
    if (tokens == 2 || tokens == 3) v[0] = vcombine_s32(vld1_s32(p), vld1_s32(p));
    if (tokens == 3) v[0] = vld1q_lane_s32(p + 2, v[0], 2);
}

// Four times `vectors` float16 scales, widened.
SP_TEMPLATE void sp_load_scales_neon(float32x4_t d[SP_ROW_VECTORS], const uint16_t *half, const int vectors) {
    if (vectors == 1) {
        d[0] = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(half)));
        return;
    }
    SP_UNROLL
    for (int r = 0; r < vectors; r += 2) {
        const float16x8_t v = vreinterpretq_f16_u16(vld1q_u16(half + 4 * r));
        d[r] = vcvt_f32_f16(vget_low_f16(v));
        d[r + 1] = vcvt_high_f32_f16(v);
    }
}

// Weights of two neighbouring quads q (even) and q + 1 of a group, for the rows of vectors 0 to `vectors`: what a
// signed dot product multiplies. 4-bit ones are 0..15.
SP_TEMPLATE void sp_load_weights_neon(sp_weight_kind kind, int8x16_t w[2][SP_ROW_VECTORS], const uint8_t *data, int q,
                                      const int vectors) {
    SP_UNROLL
    for (int r = 0; r < vectors; r++) {
        if (kind == SP_WEIGHT_Q8S) {
            w[0][r] = vld1q_s8((const int8_t *)data + 64 * q + 16 * r);
            w[1][r] = vld1q_s8((const int8_t *)data + 64 * q + 64 + 16 * r);
        } else {
            const uint8x16_t v = vld1q_u8(data + 32 * q + 16 * r);
            w[0][r] = vreinterpretq_s8_u8(vandq_u8(v, vdupq_n_u8(15)));
            w[1][r] = vreinterpretq_s8_u8(vshrq_n_u8(v, 4));
        }
    }
}
