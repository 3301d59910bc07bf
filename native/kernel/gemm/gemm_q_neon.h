// SPDX-License-Identifier: Apache-2.0
// Quantised products on ARMv8.0, which multiplies bytes to int16 (SMULL, SMLAL) and adds those up in pairs.
//
// A token's quad is broadcast to four rows; a multiplication gives the products of two rows, four each. 4-bit weights,
// used as 0..15, stay in int16 for the whole group: 8 * 15 * 127 twice, once neighbours are added, is 30,480. Of 8-bit
// ones two products fit, at most 2 * 128 * 127, and then go to int32.
#pragma once

#include "kernel/gemm/gemm_q_walk_neon.h"
#include "kernel/simd/dot_neon.h"

// Two int16 accumulators per token and vector, of rows 0, 1 and rows 2, 3.
SP_TEMPLATE void sp_dots_q4_long(sp_weight_kind kind, const sp_form form, sp_walk *at, const uint8_t *data,
                                 int32x4_t dot[][SP_ROW_VECTORS]) {
    int16x8_t sum[4][SP_ROW_VECTORS][2];
    SP_UNROLL
    for (int q = 0; q < 8; q += 2) {
        int8x16_t w[2][SP_ROW_VECTORS];
        sp_load_weights_neon(kind, w, data, q, form.vectors);
        SP_UNROLL
        for (int odd = 0; odd < 2; odd++, at->a += 4 * at->width) {
            SP_UNROLL
            for (int t = 0; t < form.tokens; t++) {
                const int8x16_t a = sp_quad_bcast_neon(at->a + 4 * t);
                SP_UNROLL
                for (int r = 0; r < form.vectors; r++) {
                    const int8x16_t v = w[odd][r];
                    int16x8_t *s = sum[t][r];
                    s[0] = q + odd ? vmlal_s8(s[0], vget_low_s8(v), vget_low_s8(a))
                                   : vmull_s8(vget_low_s8(v), vget_low_s8(a));
                    s[1] = q + odd ? vmlal_high_s8(s[1], v, a) : vmull_high_s8(v, a);
                }
            }
        }
    }
    SP_UNROLL
    for (int t = 0; t < form.tokens; t++) {
        SP_UNROLL
        for (int r = 0; r < form.vectors; r++)
            dot[t][r] = vpadalq_s16(dot[t][r], vpaddq_s16(sum[t][r][0], sum[t][r][1]));
    }
}

// Two int32 accumulators per token and vector: each row has two lanes, which are added at the end.
SP_TEMPLATE void sp_dots_q8_long(sp_weight_kind kind, const sp_form form, sp_walk *at, const uint8_t *data,
                                 int32x4_t dot[][SP_ROW_VECTORS]) {
    int32x4_t sum[4][SP_ROW_VECTORS][2];
    SP_UNROLL
    for (int q = 0; q < 8; q += 2, at->a += 8 * at->width) {
        int8x16_t w[2][SP_ROW_VECTORS];
        sp_load_weights_neon(kind, w, data, q, form.vectors);
        SP_UNROLL
        for (int t = 0; t < form.tokens; t++) {
            const int8x16_t a = sp_quad_bcast_neon(at->a + 4 * t),
                            b = sp_quad_bcast_neon(at->a + 4 * at->width + 4 * t);
            SP_UNROLL
            for (int r = 0; r < form.vectors; r++) {
                const int8x16_t v = w[0][r], u = w[1][r];
                const int16x8_t low =
                    vmlal_s8(vmull_s8(vget_low_s8(v), vget_low_s8(a)), vget_low_s8(u), vget_low_s8(b));
                const int16x8_t high = vmlal_high_s8(vmull_high_s8(v, a), u, b);
                int32x4_t *s = sum[t][r];
                s[0] = q ? vpadalq_s16(s[0], low) : vpaddlq_s16(low);
                s[1] = q ? vpadalq_s16(s[1], high) : vpaddlq_s16(high);
            }
        }
    }
    SP_UNROLL
    for (int t = 0; t < form.tokens; t++) {
        SP_UNROLL
        for (int r = 0; r < form.vectors; r++) dot[t][r] = vpaddq_s32(sum[t][r][0], sum[t][r][1]);
    }
}

SP_TEMPLATE void sp_tokens_long(sp_weight_kind kind, const int tokens, const sp_gemm_q_args *args, size_t t0) {
    const sp_form form = {.tokens = tokens, .vectors = tokens > 1 ? 2 : 4, .loaded = tokens};
    const sp_dots_fn dots = kind == SP_WEIGHT_Q8S ? sp_dots_q8_long : sp_dots_q4_long;
    sp_tokens_neon(kind, form, dots, args, t0);
}

SP_TEMPLATE void sp_gemm_q_neon(sp_weight_kind kind, const sp_gemm_q_args *given) {
    const sp_gemm_q_args args = *given;
    size_t t = 0;
    for (; t + 4 <= args.m; t += 4) sp_tokens_long(kind, 4, &args, t);
    switch (args.m - t) {
        case 1: sp_tokens_long(kind, 1, &args, t); break;
        case 2: sp_tokens_long(kind, 2, &args, t); break;
        case 3: sp_tokens_long(kind, 3, &args, t); break;
        default: break;
    }
    sp_odd_group_neon(kind, kind == SP_WEIGHT_Q8S ? sp_dots_q8_long : sp_dots_q4_long, &args);
}
