// SPDX-License-Identifier: Apache-2.0
// The walk of a block along k, which the quantised products on NEON share: start the integers, let `dots` add a group's
// products, scale. A block is some tokens by some vectors of four rows; both numbers are constants, so that its
// accumulators are registers. The loop is over blocks of two groups as they lie in a panel.
//
// Where a panel takes several passes, accumulators rest in the result between one stretch of k and the next; an odd
// last group begins from there too.
#pragma once

#include "kernel/gemm/gemm_neon.h"
#include "kernel/simd/dot_neon.h"

enum { SP_CHUNK = 32 };  // groups of a stretch: 9 to 17 KiB of weights, which stay in the first cache for all passes

// A constant form of a block.
typedef struct sp_form {
    int tokens, vectors;
    int loaded;  // values of tokens that are loaded: as many as there are, or eight, if so many may be read
    bool whole;  // the tokens are all of the panel, so a group of theirs is one run of bytes
} sp_form;

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

// Adds one group's dot products of all tokens and rows, and steps on along the activations.
typedef void (*sp_dots_fn)(sp_weight_kind kind, sp_form form, sp_walk *at, const uint8_t *data,
                           int32x4_t dot[][SP_ROW_VECTORS]);

// One of the two groups of a block.
SP_TEMPLATE void sp_group_neon(sp_weight_kind kind, const sp_form form, sp_dots_fn dots, sp_walk *at, const int odd,
                               float32x4_t acc[][SP_ROW_VECTORS]) {
    const uint16_t *scales = (const uint16_t *)(const void *)(at->scales + 32 * odd);
    int32x4_t dot[SP_MOST_TOKENS][SP_ROW_VECTORS], an[SP_TOKEN_VECTORS];
    if (kind == SP_WEIGHT_Q4S) sp_load_tokens_s32(an, at->an, form.loaded, !form.whole);
    SP_UNROLL
    for (int i = 0; i < (form.tokens + 3) / 4; i++)
        if (kind == SP_WEIGHT_Q4S) an[i] = vshlq_n_s32(an[i], 3);
    SP_UNROLL
    for (int t = 0; t < form.tokens; t++) {
        SP_UNROLL
        for (int r = 0; r < form.vectors; r++)
            dot[t][r] =
                kind == SP_WEIGHT_Q4S ? sp_dup_lane_neon(an[t / 4], sp_token_lane(form.loaded, t)) : vdupq_n_s32(0);
    }
    dots(kind, form, at, at->data + odd * (kind == SP_WEIGHT_Q8S ? 512 : 256), dot);

    float32x4_t d[SP_ROW_VECTORS], v[SP_TOKEN_VECTORS];
    sp_load_scales_neon(d, scales, form.vectors);
    sp_load_tokens_f32(v, at->ad, form.loaded, !form.whole);
    SP_UNROLL
    for (int t = 0; t < form.tokens; t++) {
        SP_UNROLL
        for (int r = 0; r < form.vectors; r++) {
            const float32x4_t scale = sp_mul_lane_neon(d[r], v[t / 4], sp_token_lane(form.loaded, t));
            acc[t][r] = vfmaq_f32(acc[t][r], vcvtq_f32_s32(dot[t][r]), scale);
        }
    }
    if (kind == SP_WEIGHT_Q4A) {
        sp_load_scales_neon(d, scales + SP_BLOCK_SCALES / sizeof *scales, form.vectors);
        sp_load_tokens_f32(v, at->as, form.loaded, !form.whole);
        SP_UNROLL
        for (int t = 0; t < form.tokens; t++) {
            SP_UNROLL
            for (int r = 0; r < form.vectors; r++)
                acc[t][r] = sp_fma_lane_neon(acc[t][r], d[r], v[t / 4], sp_token_lane(form.loaded, t));
        }
    }
    at->ad += at->width, at->as += at->width, at->an += at->width;
    SP_UNROLL
    for (int t = 0; t < form.tokens; t++) {
        SP_UNROLL
        for (int r = 0; r < form.vectors; r++) SP_SETTLE(acc[t][r]);
    }
}

// Groups g0 to g1 of a block: tokens from t0, row vectors from v0. Their number is even, or they are one `last` group.
SP_TEMPLATE void sp_pass_neon(sp_weight_kind kind, const sp_form form, sp_dots_fn dots, const bool last,
                              const sp_gemm_q_args *args, size_t t0, size_t v0, size_t g0, size_t g1) {
    const size_t block = kind == SP_WEIGHT_Q4S ? SP_BLOCK_Q4S : kind == SP_WEIGHT_Q4A ? SP_BLOCK_Q4A : SP_BLOCK_Q8S;
    float *const first = args->y + t0 * args->ldy + 4 * v0, *y = first;
    float32x4_t acc[SP_MOST_TOKENS][SP_ROW_VECTORS];
    SP_UNROLL
    for (int t = 0; t < form.tokens; t++, y += args->ldy) {
        SP_UNROLL
        for (int r = 0; r < form.vectors; r++) acc[t][r] = g0 ? vld1q_f32(y + 4 * r) : vdupq_n_f32(0.0f);
    }
    sp_walk at = sp_walk_at(kind, args, form.whole ? (size_t)form.tokens : args->width, t0, v0, g0);
    for (size_t g = g0; g < g1; g += 2) {
        sp_group_neon(kind, form, dots, &at, 0, acc);
        if (last) break;
        sp_group_neon(kind, form, dots, &at, 1, acc);
        at.scales += block, at.data += block;
    }
    y = first;
    SP_UNROLL
    for (int t = 0; t < form.tokens; t++, y += args->ldy) {
        SP_UNROLL
        for (int r = 0; r < form.vectors; r++) vst1q_f32(y + 4 * r, acc[t][r]);
    }
}

// All pairs of groups of a block of tokens.
SP_TEMPLATE void sp_tokens_neon(sp_weight_kind kind, const sp_form form, sp_dots_fn dots, const sp_gemm_q_args *args,
                                size_t t0) {
    const size_t groups = args->groups / 2 * 2, chunk = form.vectors == SP_ROW_VECTORS ? groups : SP_CHUNK;
    for (size_t g = 0; g < groups; g += chunk)
        for (size_t v = 0; v < SP_ROW_VECTORS; v += (size_t)form.vectors)
            sp_pass_neon(kind, form, dots, false, args, t0, v, g, g + chunk < groups ? g + chunk : groups);
}

// The last group of k, if their number is odd, of every token.
SP_TEMPLATE void sp_odd_group_neon(sp_weight_kind kind, sp_dots_fn dots, const sp_gemm_q_args *args) {
    const sp_form one = {.tokens = 1, .vectors = SP_ROW_VECTORS, .loaded = 1};
    if (args->groups % 2 == 0) return;
    for (size_t t = 0; t < args->m; t++)
        sp_pass_neon(kind, one, dots, true, args, t, 0, args->groups - 1, args->groups);
}
