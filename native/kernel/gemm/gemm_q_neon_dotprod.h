// SPDX-License-Identifier: Apache-2.0
// Quantised products with SDOT: a quad of a token times the quads of four rows, the activations by lane.
//
// 4-bit weights are used as they are, 0..15, so unpacking them is one instruction a vector; the offset of symmetric
// ones is in the integer accumulators' start, -8 * sum(a): the negated sums that come with the activations, shifted.
//
// A block has tokens * vectors integer and as many float accumulators, 24 registers at the most. A token alone takes
// all 16 rows at once, twelve tokens four rows, for then weights are unpacked once for all of them.
#pragma once

#include <string.h>

#include "kernel/gemm/gemm_q_walk_neon.h"
#include "kernel/simd/dot_neon.h"

// Activations of quad q where the block's tokens are not all of the panel; of a single token, of four quads at once.
SP_TEMPLATE void sp_load_quads(int8x16_t a[2], const int8_t *quad, size_t width, const int tokens, int q) {
    if (tokens > 1) {
        const int8x16x2_t both = vld1q_s8_x2(quad);
        a[0] = both.val[0], a[1] = both.val[1];
    } else if (q % 4 == 0) {
        int32_t v[4];
        for (size_t i = 0; i < 4; i++) memcpy(&v[i], quad + i * 4 * width, sizeof *v);
        a[q / 4] = vreinterpretq_s8_s32(vld1q_s32(v));
    }
}

SP_TEMPLATE void sp_dots_sdot(sp_weight_kind kind, const sp_form form, sp_walk *at, const uint8_t *data,
                              int32x4_t dot[][SP_ROW_VECTORS]) {
    const bool run = form.whole || form.tokens == 1;
    int8x16_t a[2] = {vdupq_n_s8(0), vdupq_n_s8(0)}, w[2][SP_ROW_VECTORS];
    SP_UNROLL
    for (int q = 0; q < 8; q++) {
        if (q % 2 == 0) sp_load_weights_neon(kind, w, data, q, form.vectors);
        if (!form.whole) sp_load_quads(a, at->a, at->width, form.tokens, q);
        SP_UNROLL
        for (int t = 0; t < form.tokens; t++) {
            const int i = q * form.tokens + t;
            if (form.whole && i % 8 == 0) a[0] = vld1q_s8(at->a + 4 * i), a[1] = vld1q_s8(at->a + 4 * i + 16);
            SP_UNROLL
            for (int r = 0; r < form.vectors; r++)
                dot[t][r] = sp_sdot_lane(dot[t][r], w[q % 2][r], a[run ? i / 4 % 2 : t / 4], run ? i % 4 : t % 4);
        }
        if (!form.whole) at->a += 4 * at->width;
    }
    if (form.whole) at->a += SP_GROUP * form.tokens;
}

// All pairs of groups of a block of tokens. Of one among several of a panel, eight tokens are loaded: two vectors that
// step on together.
SP_TEMPLATE void sp_tokens_sdot(sp_weight_kind kind, const int tokens, const bool whole, const sp_gemm_q_args *args,
                                size_t t0) {
    const sp_form form = {.tokens = tokens,
                          .vectors = tokens <= 3   ? 4
                                     : tokens <= 6 ? 2
                                                   : 1,
                          .loaded = whole || tokens == 1 ? tokens : 8,
                          .whole = whole};
    sp_tokens_neon(kind, form, sp_dots_sdot, args, t0);
}

// All tokens of a panel, at most twelve.
SP_TEMPLATE void sp_whole_sdot(sp_weight_kind kind, const sp_gemm_q_args *args) {
    switch (args->m) {
        case 1: sp_tokens_sdot(kind, 1, true, args, 0); break;
        case 2: sp_tokens_sdot(kind, 2, true, args, 0); break;
        case 3: sp_tokens_sdot(kind, 3, true, args, 0); break;
        case 4: sp_tokens_sdot(kind, 4, true, args, 0); break;
        case 5: sp_tokens_sdot(kind, 5, true, args, 0); break;
        case 6: sp_tokens_sdot(kind, 6, true, args, 0); break;
        case 7: sp_tokens_sdot(kind, 7, true, args, 0); break;
        case 8: sp_tokens_sdot(kind, 8, true, args, 0); break;
        case 9: sp_tokens_sdot(kind, 9, true, args, 0); break;
        case 10: sp_tokens_sdot(kind, 10, true, args, 0); break;
        case 11: sp_tokens_sdot(kind, 11, true, args, 0); break;
        default: sp_tokens_sdot(kind, 12, true, args, 0); break;
    }
}

// More tokens than that: what exceeds a multiple of eight comes first, so that eight can be loaded for it. Tokens that
// are not all of a panel, which no operator asks for, have none to their right that may be read: they end one by one.
SP_TEMPLATE void sp_part_sdot(sp_weight_kind kind, const sp_gemm_q_args *args) {
    size_t t = args->m == args->width ? args->m % 8 : 0;
    switch (t) {
        case 5: sp_tokens_sdot(kind, 5, false, args, 0); break;
        case 6: sp_tokens_sdot(kind, 6, false, args, 0); break;
        case 7: sp_tokens_sdot(kind, 7, false, args, 0); break;
        default: t = 0;
    }
    for (; t + 8 <= args->m; t += 8) sp_tokens_sdot(kind, 8, false, args, t);
    for (; t < args->m; t++) sp_tokens_sdot(kind, 1, false, args, t);
}

SP_TEMPLATE void sp_gemm_q_sdot(sp_weight_kind kind, const sp_gemm_q_args *given) {
    const sp_gemm_q_args args = *given;  // a copy stays in registers: stores to the result cannot change it
    if (args.m == args.width && args.m <= SP_MOST_TOKENS) sp_whole_sdot(kind, &args);
    else sp_part_sdot(kind, &args);
    sp_odd_group_neon(kind, sp_dots_sdot, &args);
}
