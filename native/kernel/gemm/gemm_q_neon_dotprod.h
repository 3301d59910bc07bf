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

enum { SP_CHUNK_BLOCKS = 16 };  // 32 groups: 9 to 17 KiB of weights

// Nothing that comes after in the order of volatile statements begins before v is there.
#define SP_SETTLE(v) __asm__ volatile("" : "+w"(v))

// acc + four dot products of a quad. `volatile` keeps loads and products in the order in which they are written:
// clang's scheduler else lifts the loads of a whole group to its start, runs out of registers, and keeps weights on the
// stack.
#define SP_SDOT(lane) __asm__ volatile("sdot %0.4s, %1.16b, %2.4b[" #lane "]" : "+w"(acc) : "w"(w), "w"(a))
SP_TEMPLATE int32x4_t sp_sdot_lane(int32x4_t acc, int8x16_t w, int8x16_t a, const int lane) {
    switch (lane) {
        case 0: SP_SDOT(0); break;
        case 1: SP_SDOT(1); break;
        case 2: SP_SDOT(2); break;
        default: SP_SDOT(3); break;
    }
    return acc;
}

// A block on its way along k.
typedef struct sp_walk {
    const uint8_t *scales, *data;  // of the block of two groups, at the first of its rows
    const int8_t *a;
    const float *ad, *as;
    const int32_t *an;
    size_t width;
} sp_walk;

SP_TEMPLATE sp_walk sp_walk_at(sp_weight_kind kind, const sp_gemm_q_args *args, size_t width, size_t t0, size_t v0,
                               size_t g) {
    const sp_weight_group w = sp_weight_group_at(kind, args->w, g);
    const size_t at = g * width + t0;
    return (sp_walk){.scales = (const uint8_t *)(w.scales + 4 * v0),
                     .data = w.data + 16 * v0,
                     .a = args->a + 4 * (g * (SP_GROUP / 4) * width + t0),
                     .ad = args->ad + at,
                     .as = args->as + at,
                     .an = args->an + at,
                     .width = width};
}

// How many tokens are loaded for a block's: where it is one of several of a panel, eight, whose vectors step on
// together.
SP_TEMPLATE int sp_loaded_tokens(const int tokens, const bool whole) { return whole || tokens == 1 ? tokens : 8; }

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

// dot[t][r] += one group. `whole`: the block's tokens are all of the panel, so a group of theirs is one run of bytes.
SP_TEMPLATE void sp_dots_sdot(sp_weight_kind kind, const int tokens, const int vectors, const bool whole, sp_walk *at,
                              const uint8_t *data, int32x4_t dot[][SP_ROW_VECTORS]) {
    const bool run = whole || tokens == 1;
    int8x16_t a[2] = {vdupq_n_s8(0), vdupq_n_s8(0)}, w[2][SP_ROW_VECTORS];
    SP_UNROLL
    for (int q = 0; q < 8; q++) {
        if (q % 2 == 0) sp_load_weights_neon(kind, w, data, q, vectors);
        if (!whole) sp_load_quads(a, at->a, at->width, tokens, q);
        SP_UNROLL
        for (int t = 0; t < tokens; t++) {
            const int i = q * tokens + t;
            if (whole && i % 8 == 0) a[0] = vld1q_s8(at->a + 4 * i), a[1] = vld1q_s8(at->a + 4 * i + 16);
            SP_UNROLL
            for (int r = 0; r < vectors; r++)
                dot[t][r] = sp_sdot_lane(dot[t][r], w[q % 2][r], a[run ? i / 4 % 2 : t / 4], run ? i % 4 : t % 4);
        }
        if (!whole) at->a += 4 * at->width;
    }
    if (whole) at->a += SP_GROUP * tokens;
}

// One of the two groups of a block.
SP_TEMPLATE void sp_group_sdot(sp_weight_kind kind, const int tokens, const int vectors, const bool whole, sp_walk *at,
                               const int odd, float32x4_t acc[][SP_ROW_VECTORS]) {
    const int loaded = sp_loaded_tokens(tokens, whole);
    const uint16_t *scales = (const uint16_t *)(const void *)(at->scales + 32 * odd);
    int32x4_t dot[SP_MOST_TOKENS][SP_ROW_VECTORS], an[SP_TOKEN_VECTORS];
    if (kind == SP_WEIGHT_Q4S) sp_load_tokens_s32(an, at->an, loaded, !whole);
    SP_UNROLL
    for (int i = 0; i < (tokens + 3) / 4; i++)
        if (kind == SP_WEIGHT_Q4S) an[i] = vshlq_n_s32(an[i], 3);
    SP_UNROLL
    for (int t = 0; t < tokens; t++) {
        SP_UNROLL
        for (int r = 0; r < vectors; r++)
            dot[t][r] = kind == SP_WEIGHT_Q4S ? sp_dup_lane_neon(an[t / 4], sp_token_lane(loaded, t)) : vdupq_n_s32(0);
    }
    sp_dots_sdot(kind, tokens, vectors, whole, at, at->data + odd * (kind == SP_WEIGHT_Q8S ? 512 : 256), dot);

    float32x4_t d[SP_ROW_VECTORS], v[SP_TOKEN_VECTORS];
    sp_load_scales_neon(d, scales, vectors);
    sp_load_tokens_f32(v, at->ad, loaded, !whole);
    SP_UNROLL
    for (int t = 0; t < tokens; t++) {
        SP_UNROLL
        for (int r = 0; r < vectors; r++) {
            const float32x4_t scale = sp_mul_lane_neon(d[r], v[t / 4], sp_token_lane(loaded, t));
            acc[t][r] = vfmaq_f32(acc[t][r], vcvtq_f32_s32(dot[t][r]), scale);
        }
    }
    if (kind == SP_WEIGHT_Q4A) {
        sp_load_scales_neon(d, scales + SP_BLOCK_SCALES / sizeof *scales, vectors);
        sp_load_tokens_f32(v, at->as, loaded, !whole);
        SP_UNROLL
        for (int t = 0; t < tokens; t++) {
            SP_UNROLL
            for (int r = 0; r < vectors; r++)
                acc[t][r] = sp_fma_lane_neon(acc[t][r], d[r], v[t / 4], sp_token_lane(loaded, t));
        }
    }
    at->ad += at->width, at->as += at->width, at->an += at->width;
    SP_UNROLL
    for (int t = 0; t < tokens; t++) {
        SP_UNROLL
        for (int r = 0; r < vectors; r++) SP_SETTLE(acc[t][r]);
    }
}

// Groups g0 to g1 of a block: tokens from t0, row vectors from v0. Their number is even, or they are one `last` group.
SP_TEMPLATE void sp_pass_sdot(sp_weight_kind kind, const int tokens, const int vectors, const bool whole,
                              const bool last, const sp_gemm_q_args *args, size_t t0, size_t v0, size_t g0, size_t g1) {
    const size_t block = kind == SP_WEIGHT_Q4S ? SP_BLOCK_Q4S : kind == SP_WEIGHT_Q4A ? SP_BLOCK_Q4A : SP_BLOCK_Q8S;
    float *const first = args->y + t0 * args->ldy + 4 * v0, *y = first;
    float32x4_t acc[SP_MOST_TOKENS][SP_ROW_VECTORS];
    SP_UNROLL
    for (int t = 0; t < tokens; t++, y += args->ldy) {
        SP_UNROLL
        for (int r = 0; r < vectors; r++) acc[t][r] = g0 ? vld1q_f32(y + 4 * r) : vdupq_n_f32(0.0f);
    }
    sp_walk at = sp_walk_at(kind, args, whole ? (size_t)tokens : args->width, t0, v0, g0);
    for (size_t g = g0; g < g1; g += 2) {
        sp_group_sdot(kind, tokens, vectors, whole, &at, 0, acc);
        if (last) break;
        sp_group_sdot(kind, tokens, vectors, whole, &at, 1, acc);
        at.scales += block, at.data += block;
    }
    y = first;
    SP_UNROLL
    for (int t = 0; t < tokens; t++, y += args->ldy) {
        SP_UNROLL
        for (int r = 0; r < vectors; r++) vst1q_f32(y + 4 * r, acc[t][r]);
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
    sp_odd_group_sdot(kind, &args);
}
