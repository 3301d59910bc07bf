// SPDX-License-Identifier: Apache-2.0
// Quantised products with SDOT: a quad of a token times the quads of four rows, the activations by lane.
//
// 4-bit weights are used as they are, 0..15, so unpacking them is one instruction a vector; the offset of symmetric
// ones is in the integer accumulators' start, -8 * sum(a): the negated sums that come with the activations, shifted.
//
// A block has tokens * vectors integer and as many float accumulators, 24 registers at the most. A token alone takes
// all 16 rows at once, twelve tokens four rows, for then weights are unpacked once for all of them. The loop is over
// blocks of two groups as they lie in a panel. Where a panel takes several passes, they are made over a chunk of k that
// stays in the first cache, and accumulators rest in the result in between; so does an odd last group begin from there.
#pragma once

#include <string.h>

#include "kernel/gemm/gemm_neon.h"

enum { SP_CHUNK_BLOCKS = 8 };  // 16 groups: 5 to 9 KiB of weights

SP_TEMPLATE int32x4_t sp_sdot_lane(int32x4_t acc, int8x16_t w, int8x16_t a, const int lane) {
#define SP_CALL_LANE(i) vdotq_laneq_s32(acc, w, a, i)
    return SP_BY_LANE(lane, SP_CALL_LANE);
#undef SP_CALL_LANE
}

// A block on its way along k.
typedef struct sp_walk {
    const int8_t *a;
    const float *ad, *as;
    const int32_t *an;
    size_t width;
} sp_walk;

SP_TEMPLATE sp_walk sp_walk_at(const sp_gemm_q_args *args, size_t t0, size_t g) {
    const size_t at = g * args->width + t0;
    return (sp_walk){.a = args->a + 4 * (g * (SP_GROUP / 4) * args->width + t0),
                     .ad = args->ad + at,
                     .as = args->as + at,
                     .an = args->an + at,
                     .width = args->width};
}

// Four quads of one token of several.
SP_TEMPLATE int8x16_t sp_gather_quads(const int8_t *a, size_t stride) {
    int32x4_t v = vdupq_n_s32(0);
    int32_t quad;
    memcpy(&quad, a, sizeof quad), v = vsetq_lane_s32(quad, v, 0);
    memcpy(&quad, a + stride, sizeof quad), v = vsetq_lane_s32(quad, v, 1);
    memcpy(&quad, a + 2 * stride, sizeof quad), v = vsetq_lane_s32(quad, v, 2);
    memcpy(&quad, a + 3 * stride, sizeof quad), v = vsetq_lane_s32(quad, v, 3);
    return vreinterpretq_s8_s32(v);
}

// dot[t][r] += one group. `whole`: the block's tokens are all of the panel, so a group of theirs is one run of bytes.
SP_TEMPLATE void sp_dots_sdot(sp_weight_kind kind, const int tokens, const int vectors, const bool whole,
                              const sp_walk *at, const uint8_t *data, int32x4_t dot[][SP_ROW_VECTORS]) {
    int8x16_t a = vdupq_n_s8(0);
    SP_UNROLL
    for (int q = 0; q < 8; q++) {
        const int8_t *quad = at->a + (size_t)q * 4 * at->width;
        int8x16_t w[SP_ROW_VECTORS];
        SP_UNROLL
        for (int r = 0; r < vectors; r++) w[r] = sp_load_weights_neon(kind, data, q, r);
        SP_UNROLL
        for (int t = 0; t < tokens; t++) {
            int lane = (q * tokens + t) % 4;
            if (whole && lane == 0) a = vld1q_s8(at->a + 4 * (q * tokens + t));
            if (!whole && tokens == 1 && lane == 0) a = sp_gather_quads(quad, 4 * at->width);
            if (!whole && tokens > 1) {
                lane = sp_token_lane(tokens, t);
                if (t % 4 == 0) a = vld1q_s8(quad + 4 * (t + 4 <= tokens ? t : tokens - 4));
            }
            SP_UNROLL
            for (int r = 0; r < vectors; r++) dot[t][r] = sp_sdot_lane(dot[t][r], w[r], a, lane);
        }
    }
}

// One group of a block: `scales`, `minima` and `data` are at the block's first row.
SP_TEMPLATE void sp_group_sdot(sp_weight_kind kind, const int tokens, const int vectors, const bool whole, sp_walk *at,
                               sp_weight_group w, float32x4_t acc[][SP_ROW_VECTORS]) {
    int32x4_t dot[SP_MOST_TOKENS][SP_ROW_VECTORS], an[SP_TOKEN_VECTORS];
    if (kind == SP_WEIGHT_Q4S) sp_load_tokens_s32(an, at->an, tokens);
    SP_UNROLL
    for (int i = 0; i < (tokens + 3) / 4; i++)
        if (kind == SP_WEIGHT_Q4S) an[i] = vshlq_n_s32(an[i], 3);
    SP_UNROLL
    for (int t = 0; t < tokens; t++) {
        SP_UNROLL
        for (int r = 0; r < vectors; r++)
            dot[t][r] = kind == SP_WEIGHT_Q4S ? sp_dup_lane_neon(an[t / 4], sp_token_lane(tokens, t)) : vdupq_n_s32(0);
    }
    sp_dots_sdot(kind, tokens, vectors, whole, at, w.data, dot);

    float32x4_t d[SP_ROW_VECTORS], ad[SP_TOKEN_VECTORS];
    sp_load_scales_neon(d, w.scales, vectors);
    sp_load_tokens_f32(ad, at->ad, tokens);
    SP_UNROLL
    for (int t = 0; t < tokens; t++) {
        SP_UNROLL
        for (int r = 0; r < vectors; r++) {
            const float32x4_t scale = sp_mul_lane_neon(d[r], ad[t / 4], sp_token_lane(tokens, t));
            acc[t][r] = vfmaq_f32(acc[t][r], vcvtq_f32_s32(dot[t][r]), scale);
        }
    }
    if (kind == SP_WEIGHT_Q4A) {
        sp_load_scales_neon(d, w.minima, vectors);
        sp_load_tokens_f32(ad, at->as, tokens);
        SP_UNROLL
        for (int t = 0; t < tokens; t++) {
            SP_UNROLL
            for (int r = 0; r < vectors; r++)
                acc[t][r] = sp_fma_lane_neon(acc[t][r], d[r], ad[t / 4], sp_token_lane(tokens, t));
        }
    }
    at->a += SP_GROUP * at->width, at->ad += at->width, at->as += at->width, at->an += at->width;
}

SP_TEMPLATE sp_weight_group sp_weight_rows(sp_weight_group w, size_t vector) {
    return (sp_weight_group){w.scales + 4 * vector, w.minima + 4 * vector, w.data + 16 * vector};
}

// Groups g0 to g1 of a block: tokens from t0, row vectors from v0. Their number is even, or they are one `last` group.
SP_TEMPLATE void sp_pass_sdot(sp_weight_kind kind, const int tokens, const int vectors, const bool whole,
                              const bool last, const sp_gemm_q_args *args, size_t t0, size_t v0, size_t g0, size_t g1) {
    float *y = args->y + t0 * args->ldy + 4 * v0;
    float32x4_t acc[SP_MOST_TOKENS][SP_ROW_VECTORS];
    SP_UNROLL
    for (int t = 0; t < tokens; t++) {
        SP_UNROLL
        for (int r = 0; r < vectors; r++)
            acc[t][r] = g0 ? vld1q_f32(y + (size_t)t * args->ldy + 4 * r) : vdupq_n_f32(0.0f);
    }
    sp_walk at = sp_walk_at(args, t0, g0);
    for (size_t g = g0; g < g1; g += 2) {
        sp_group_sdot(kind, tokens, vectors, whole, &at, sp_weight_rows(sp_weight_group_at(kind, args->w, g), v0), acc);
        if (last) break;
        sp_group_sdot(kind, tokens, vectors, whole, &at, sp_weight_rows(sp_weight_group_at(kind, args->w, g + 1), v0),
                      acc);
    }
    SP_UNROLL
    for (int t = 0; t < tokens; t++) {
        SP_UNROLL
        for (int r = 0; r < vectors; r++) vst1q_f32(y + (size_t)t * args->ldy + 4 * r, acc[t][r]);
    }
}

// All pairs of groups of a block of tokens.
SP_TEMPLATE void sp_tokens_sdot(sp_weight_kind kind, const int tokens, const bool whole, const sp_gemm_q_args *args,
                                size_t t0) {
    const int vectors = tokens <= 3 ? 4 : tokens <= 6 ? 2 : 1;
    const size_t groups = args->groups / 2 * 2, chunk = vectors == 4 ? groups : 2 * SP_CHUNK_BLOCKS;
    for (size_t g = 0; g < groups; g += chunk)
        for (size_t v = 0; v < SP_ROW_VECTORS; v += (size_t)vectors)
            sp_pass_sdot(kind, tokens, vectors, whole, false, args, t0, v, g, g + chunk < groups ? g + chunk : groups);
}

// The last group of k, if their number is odd, of every token.
SP_TEMPLATE void sp_odd_group_sdot(sp_weight_kind kind, const sp_gemm_q_args *args) {
    if (args->groups % 2 == 0) return;
    for (size_t t = 0; t < args->m; t++)
        sp_pass_sdot(kind, 1, 4, false, true, args, t, 0, args->groups - 1, args->groups);
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

// Some tokens of a panel, any number.
SP_TEMPLATE void sp_part_sdot(sp_weight_kind kind, const sp_gemm_q_args *args) {
    size_t t = 0;
    for (; t + 8 <= args->m; t += 8) sp_tokens_sdot(kind, 8, false, args, t);
    switch (args->m - t) {
        case 4: sp_tokens_sdot(kind, 4, false, args, t); break;
        case 5: sp_tokens_sdot(kind, 5, false, args, t); break;
        case 6: sp_tokens_sdot(kind, 6, false, args, t); break;
        case 7: sp_tokens_sdot(kind, 7, false, args, t); break;
        default:
            for (; t < args->m; t++) sp_tokens_sdot(kind, 1, false, args, t);
    }
}

SP_TEMPLATE void sp_gemm_q_sdot(sp_weight_kind kind, const sp_gemm_q_args *args) {
    if (args->m == args->width && args->m <= SP_MOST_TOKENS) sp_whole_sdot(kind, args);
    else sp_part_sdot(kind, args);
    sp_odd_group_sdot(kind, args);
}
