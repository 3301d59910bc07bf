// SPDX-License-Identifier: Apache-2.0
// Quantised products with SMMLA: two tokens times two rows, eight k at once.
//
// SMMLA wants eight neighbouring k of a row side by side, and panels hold four: a 32-bit zip of neighbouring quads
// makes operands of two rows. Activations are zipped once for a chunk of k, into memory on the stack that all passes
// over the rows read; the same goes for what is scaled with, each token's value twice: [t0 t0 t1 t1], as the results
// lie. Those stay so until the end, then two 64-bit halves make a row of four.
//
// From four tokens on this takes fewer instructions than SDOT (gemm_q_neon_dotprod.h), which does the rest: few tokens,
// and an odd last group.
#pragma once

#include "kernel/gemm/gemm_q_neon_dotprod.h"

enum { SP_MOST_PAIRS = SP_MOST_TOKENS / 2, SP_CHUNK_GROUPS = 2 * SP_CHUNK_BLOCKS, SP_ROW_PAIRS = 4 };

// Activations of a chunk for one block of tokens.
typedef struct sp_zipped {
    int8_t a[SP_CHUNK_GROUPS][4][SP_MOST_PAIRS * 16];  // of two neighbouring quads: [pair][token][8]
    float ad[SP_CHUNK_GROUPS][SP_MOST_PAIRS * 4], as[SP_CHUNK_GROUPS][SP_MOST_PAIRS * 4];
    int32_t an[SP_CHUNK_GROUPS][SP_MOST_PAIRS * 4];  // times 8
} sp_zipped;

// acc + dot products of two tokens by two rows; in order, as SP_SDOT.
SP_TEMPLATE int32x4_t sp_smmla(int32x4_t acc, int8x16_t a, int8x16_t w) {
    __asm__ volatile("smmla %0.4s, %1.16b, %2.16b" : "+w"(acc) : "w"(a), "w"(w));
    return acc;
}

// Tokens go in vectors of four, two pairs each; the last vector of a ragged block overlaps the one before, and where it
// brings but one or two new tokens, only its second pair is kept. Among more tokens, whole vectors are there to be
// read.
SP_TEMPLATE int sp_pairs(const int tokens) { return (tokens + 1) / 2; }
SP_TEMPLATE int sp_pair_first(const int tokens, const bool whole, const int pair) {
    if (!whole || pair < tokens / 4 * 2) return 2 * pair;
    return tokens % 4 == 3 ? tokens - 4 + pair % 2 * 2 : tokens - 2;
}

// Stores x and y of `tokens` tokens zipped by 32 bits; both start at the block's first token.
SP_TEMPLATE void sp_zip_tokens(int32_t *dst, const int32_t *x, const int32_t *y, const int tokens, const bool whole,
                               const int shift) {
    SP_UNROLL
    for (int t = 0; t < tokens; t += 4) {
        const int from = t + 4 <= tokens || !whole ? t : tokens - 4;
        int32x4x2_t v = {{vld1q_s32(x + from), vld1q_s32(y + from)}};
        if (shift) v.val[0] = v.val[1] = vshlq_n_s32(v.val[0], 3);
        if (t + 2 < tokens || !whole) vst2q_s32(dst + 2 * t, v);
        else vst1q_s32(dst + 2 * t, vzip2q_s32(v.val[0], v.val[1]));
    }
}

SP_TEMPLATE void sp_zip_chunk(sp_weight_kind kind, sp_zipped *z, const int tokens, const bool whole,
                              const sp_gemm_q_args *args, size_t t0, size_t g0, size_t g1) {
    const size_t width = whole ? (size_t)tokens : args->width, at = g0 * width + t0;
    const int32_t *a = (const int32_t *)(const void *)args->a + g0 * (SP_GROUP / 4) * width + t0, *an = args->an + at;
    const int32_t *ad = (const int32_t *)(const void *)(args->ad + at),
                  *as = (const int32_t *)(const void *)(args->as + at);
    for (size_t g = 0; g < g1 - g0; g++) {
        SP_UNROLL
        for (int q = 0; q < 4; q++, a += 2 * width)
            sp_zip_tokens((int32_t *)(void *)z->a[g][q], a, a + width, tokens, whole, 0);
        sp_zip_tokens((int32_t *)(void *)z->ad[g], ad, ad, tokens, whole, 0);
        if (kind == SP_WEIGHT_Q4A) sp_zip_tokens((int32_t *)(void *)z->as[g], as, as, tokens, whole, 0);
        if (kind == SP_WEIGHT_Q4S) sp_zip_tokens(z->an[g], an, an, tokens, whole, 3);
        ad += width, as += width, an += width;
    }
}

// Scales of pairs of rows: [r0 r1 r0 r1].
SP_TEMPLATE void sp_load_pair_scales(float32x4_t d[SP_ROW_PAIRS], const uint16_t *half, const int vectors) {
    float32x4_t v[SP_ROW_VECTORS];
    sp_load_scales_neon(v, half, vectors);
    SP_UNROLL
    for (int r = 0; r < vectors; r++) {
        d[2 * r] = vcombine_f32(vget_low_f32(v[r]), vget_low_f32(v[r]));
        d[2 * r + 1] = vcombine_f32(vget_high_f32(v[r]), vget_high_f32(v[r]));
    }
}

// One of the two groups of a block of weights.
SP_TEMPLATE void sp_group_smmla(sp_weight_kind kind, const int pairs, const int vectors, const uint8_t *scales_at,
                                const uint8_t *data, const sp_zipped *z, size_t g, float32x4_t acc[][SP_ROW_PAIRS]) {
    const uint16_t *scales = (const uint16_t *)(const void *)scales_at;
    int32x4_t dot[SP_MOST_PAIRS][SP_ROW_PAIRS];
    SP_UNROLL
    for (int p = 0; p < pairs; p++) {
        SP_UNROLL
        for (int r = 0; r < 2 * vectors; r++)
            dot[p][r] = kind == SP_WEIGHT_Q4S ? vld1q_s32(z->an[g] + 4 * p) : vdupq_n_s32(0);
    }
    SP_UNROLL
    for (int q = 0; q < 4; q++) {
        int8x16_t w[2][SP_ROW_VECTORS], zip[SP_ROW_PAIRS];
        sp_load_weights_neon(kind, w, data, 2 * q, vectors);
        SP_UNROLL
        for (int r = 0; r < vectors; r++) {
            const int32x4_t even = vreinterpretq_s32_s8(w[0][r]), odd = vreinterpretq_s32_s8(w[1][r]);
            zip[2 * r] = vreinterpretq_s8_s32(vzip1q_s32(even, odd));
            zip[2 * r + 1] = vreinterpretq_s8_s32(vzip2q_s32(even, odd));
        }
        SP_UNROLL
        for (int p = 0; p < pairs; p += 2) {
            const int8x16_t a = vld1q_s8(z->a[g][q] + 16 * p);
            const int8x16_t b = p + 1 < pairs ? vld1q_s8(z->a[g][q] + 16 * p + 16) : a;
            SP_UNROLL
            for (int r = 0; r < 2 * vectors; r++) {
                dot[p][r] = sp_smmla(dot[p][r], a, zip[r]);
                if (p + 1 < pairs) dot[p + 1][r] = sp_smmla(dot[p + 1][r], b, zip[r]);
            }
        }
    }
    float32x4_t d[SP_ROW_PAIRS];
    sp_load_pair_scales(d, scales, vectors);
    SP_UNROLL
    for (int p = 0; p < pairs; p++) {
        const float32x4_t ad = vld1q_f32(z->ad[g] + 4 * p);
        SP_UNROLL
        for (int r = 0; r < 2 * vectors; r++)
            acc[p][r] = vfmaq_f32(acc[p][r], vcvtq_f32_s32(dot[p][r]), vmulq_f32(d[r], ad));
    }
    if (kind == SP_WEIGHT_Q4A) {
        sp_load_pair_scales(d, scales + SP_BLOCK_SCALES / sizeof *scales, vectors);
        SP_UNROLL
        for (int p = 0; p < pairs; p++) {
            const float32x4_t as = vld1q_f32(z->as[g] + 4 * p);
            SP_UNROLL
            for (int r = 0; r < 2 * vectors; r++) acc[p][r] = vfmaq_f32(acc[p][r], d[r], as);
        }
    }
    SP_UNROLL
    for (int p = 0; p < pairs; p++) {
        SP_UNROLL
        for (int r = 0; r < 2 * vectors; r++) SP_SETTLE(acc[p][r]);
    }
}

// Groups g0 to g1, an even number of a chunk: tokens from t0, row vectors from v0.
SP_TEMPLATE void sp_pass_smmla(sp_weight_kind kind, const int tokens, const int vectors, const bool whole,
                               const sp_gemm_q_args *args, const sp_zipped *z, size_t t0, size_t v0, size_t g0,
                               size_t g1) {
    const size_t block = kind == SP_WEIGHT_Q4S ? SP_BLOCK_Q4S : kind == SP_WEIGHT_Q4A ? SP_BLOCK_Q4A : SP_BLOCK_Q8S;
    const int pairs = sp_pairs(tokens);
    float *const y = args->y + t0 * args->ldy + 4 * v0;
    float32x4_t acc[SP_MOST_PAIRS][SP_ROW_PAIRS];
    SP_UNROLL
    for (int p = 0; p < pairs; p++) {
        const int t = sp_pair_first(tokens, whole, p);
        const float *one = y + (size_t)t * args->ldy, *two = t + 1 < tokens ? one + args->ldy : one;
        SP_UNROLL
        for (int r = 0; r < 2 * vectors; r++)
            acc[p][r] = g0 ? vcombine_f32(vld1_f32(one + 2 * r), vld1_f32(two + 2 * r)) : vdupq_n_f32(0.0f);
    }
    const sp_weight_group w = sp_weight_group_at(kind, args->w, g0);
    const uint8_t *scales = (const uint8_t *)(w.scales + 4 * v0), *data = w.data + 16 * v0;
    for (size_t g = 0; g < g1 - g0; g += 2, scales += block, data += block) {
        sp_group_smmla(kind, pairs, vectors, scales, data, z, g, acc);
        sp_group_smmla(kind, pairs, vectors, scales + 32, data + (kind == SP_WEIGHT_Q8S ? 512 : 256), z, g + 1, acc);
    }
    SP_UNROLL
    for (int p = 0; p < pairs; p++) {
        const int t = sp_pair_first(tokens, whole, p);
        float *one = y + (size_t)t * args->ldy;
        SP_UNROLL
        for (int r = 0; r < vectors; r++) {
            const float64x2_t low = vreinterpretq_f64_f32(acc[p][2 * r]),
                              high = vreinterpretq_f64_f32(acc[p][2 * r + 1]);
            vst1q_f32(one + 4 * r, vreinterpretq_f32_f64(vzip1q_f64(low, high)));
            if (t + 1 < tokens) vst1q_f32(one + args->ldy + 4 * r, vreinterpretq_f32_f64(vzip2q_f64(low, high)));
        }
    }
}

// All pairs of groups of a block of tokens.
SP_TEMPLATE void sp_tokens_smmla(sp_weight_kind kind, const int tokens, const bool whole, const sp_gemm_q_args *args,
                                 sp_zipped *z, size_t t0) {
    const int vectors = tokens <= 6 ? 2 : 1;
    const size_t groups = args->groups / 2 * 2;
    for (size_t g = 0; g < groups; g += SP_CHUNK_GROUPS) {
        const size_t end = g + SP_CHUNK_GROUPS < groups ? g + SP_CHUNK_GROUPS : groups;
        sp_zip_chunk(kind, z, tokens, whole, args, t0, g, end);
        for (size_t v = 0; v < SP_ROW_VECTORS; v += (size_t)vectors)
            sp_pass_smmla(kind, tokens, vectors, whole, args, z, t0, v, g, end);
    }
}

// From four tokens on, all of a panel. Beyond twelve four come last, so that vectors of four can be read of the others.
SP_TEMPLATE void sp_whole_smmla(sp_weight_kind kind, const sp_gemm_q_args *args) {
    sp_zipped z;
    switch (args->m) {
        case 4: sp_tokens_smmla(kind, 4, true, args, &z, 0); break;
        case 5: sp_tokens_smmla(kind, 5, true, args, &z, 0); break;
        case 6: sp_tokens_smmla(kind, 6, true, args, &z, 0); break;
        case 7: sp_tokens_smmla(kind, 7, true, args, &z, 0); break;
        case 8: sp_tokens_smmla(kind, 8, true, args, &z, 0); break;
        case 9: sp_tokens_smmla(kind, 9, true, args, &z, 0); break;
        case 10: sp_tokens_smmla(kind, 10, true, args, &z, 0); break;
        case 11: sp_tokens_smmla(kind, 11, true, args, &z, 0); break;
        case 12: sp_tokens_smmla(kind, 12, true, args, &z, 0); break;
        case 13:
        case 14: sp_tokens_smmla(kind, 10, false, args, &z, 0); break;
        default: sp_tokens_smmla(kind, 12, false, args, &z, 0); break;
    }
    if (args->m > SP_MOST_TOKENS) sp_tokens_smmla(kind, 4, false, args, &z, args->m - 4);
}

SP_TEMPLATE void sp_gemm_q_smmla(sp_weight_kind kind, const sp_gemm_q_args *given) {
    const sp_gemm_q_args args = *given;
    if (args.m != args.width) sp_part_sdot(kind, &args);
    else if (args.m >= 4) sp_whole_smmla(kind, &args);
    else if (args.m == 3) sp_tokens_sdot(kind, 3, true, &args, 0);
    else if (args.m == 2) sp_tokens_sdot(kind, 2, true, &args, 0);
    else sp_tokens_sdot(kind, 1, true, &args, 0);
    sp_odd_group_sdot(kind, &args);
}
