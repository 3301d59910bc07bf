// SPDX-License-Identifier: Apache-2.0
// Quantised products with SMMLA: two tokens times two rows, eight k at once.
//
// SMMLA wants eight neighbouring k of a row side by side, and panels hold four: a 32-bit zip of neighbouring quads
// makes operands of two rows. The activations come zipped (gemm_q_zip_neon.h), and so does what is scaled with. Results
// lie two tokens by two rows until the end, then two 64-bit halves make a row of four.
//
// SDOT (gemm_q_neon_dotprod.h) takes fewer instructions for up to three tokens, for five, for one left over, and for an
// odd last group.
#pragma once

#include "kernel/gemm/gemm_q_neon_dotprod.h"
#include "kernel/gemm/gemm_q_zip_neon.h"

enum { SP_ROW_PAIRS = 4 };  // of a block, at the most

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

// Vectors of two pairs that lie side by side, so that one instruction can load them.
SP_TEMPLATE void sp_load_two(int32x4_t v[2], const int32_t *at, const int p, const int pairs) {
    v[0] = vld1q_s32(at + 4 * p);
    if (p + 1 < pairs) v[1] = vld1q_s32(at + 4 * p + 4);
}

// The same, every time anew: loading is one instruction for two accumulators, copying or clearing would be two.
#define SP_LOAD_PAIRS(at) \
    __asm__ volatile("ldp %q0, %q1, [%2, #" #at "]" : "=w"(v[0]), "=w"(v[1]) : "r"(z), "m"(*(const int32_t (*)[24])z))
SP_TEMPLATE void sp_load_two_anew(int32x4_t v[2], const int32_t *z, const int p) {
    switch (p) {
        case 0: SP_LOAD_PAIRS(0); break;
        case 2: SP_LOAD_PAIRS(32); break;
        default: SP_LOAD_PAIRS(64); break;
    }
}

// What the integers start from: `an`, or NULL for zeros. A last pair without a neighbour loads two zeros for two pairs
// of rows, but copies what differs by token.
static const int32_t sp_zeros[4 * SP_MOST_PAIRS];

SP_TEMPLATE void sp_starts_smmla(const int pairs, const int vectors, const int32_t *an, int32x4_t dot[][SP_ROW_PAIRS]) {
    SP_UNROLL
    for (int p = 0; p < pairs; p += 2) {
        const bool two = p + 1 < pairs;
        int32x4_t v[2];
        if (an && !two) v[0] = v[1] = vld1q_s32(an + 4 * p);
        SP_UNROLL
        for (int r = 0; r < 2 * vectors; r++) {
            if (two || (!an && r % 2 == 0)) sp_load_two_anew(v, an ? an : sp_zeros, p);
            dot[p][r] = v[two ? 0 : r % 2];
            if (two) dot[p + 1][r] = v[1];
        }
    }
}

SP_TEMPLATE void sp_dots_smmla(sp_weight_kind kind, const int pairs, const int vectors, const uint8_t *data,
                               const int32_t *z, int32x4_t dot[][SP_ROW_PAIRS]) {
    SP_UNROLL
    for (int q = 0; q < 4; q++, z += 4 * pairs) {
        int8x16_t w[2][SP_ROW_VECTORS];
        int32x4_t rows[SP_ROW_PAIRS], a[2];
        sp_load_weights_neon(kind, w, data, 2 * q, vectors);
        SP_UNROLL
        for (int r = 0; r < vectors; r++) {
            const int32x4_t even = vreinterpretq_s32_s8(w[0][r]), odd = vreinterpretq_s32_s8(w[1][r]);
            rows[2 * r] = vzip1q_s32(even, odd), rows[2 * r + 1] = vzip2q_s32(even, odd);
        }
        SP_UNROLL
        for (int p = 0; p < pairs; p++) {
            if (p % 2 == 0) sp_load_two(a, z, p, pairs);
            SP_UNROLL
            for (int r = 0; r < 2 * vectors; r++) dot[p][r] = sp_smmla(dot[p][r], a[p % 2], rows[r]);
        }
    }
}

// One of the two groups of a block of weights with its activations.
SP_TEMPLATE void sp_group_smmla(sp_weight_kind kind, const int pairs, const int vectors, const uint8_t *scales_at,
                                const uint8_t *data, const int32_t *z, float32x4_t acc[][SP_ROW_PAIRS]) {
    const uint16_t *scales = (const uint16_t *)(const void *)scales_at;
    const int32_t *ad = z + 16 * pairs, *more = z + 20 * pairs;
    int32x4_t dot[SP_MOST_PAIRS][SP_ROW_PAIRS], v[2];
    sp_starts_smmla(pairs, vectors, kind == SP_WEIGHT_Q4S ? more : NULL, dot);
    sp_dots_smmla(kind, pairs, vectors, data, z, dot);

    float32x4_t d[SP_ROW_PAIRS];
    sp_load_pair_scales(d, scales, vectors);
    SP_UNROLL
    for (int p = 0; p < pairs; p++) {
        if (vectors == 1 && p % 2 == 0) sp_load_two(v, ad, p, pairs);
        if (vectors > 1) v[p % 2] = vld1q_s32(ad + 4 * p);
        const float32x4_t by = vreinterpretq_f32_s32(v[p % 2]);
        SP_UNROLL
        for (int r = 0; r < 2 * vectors; r += 2) {
            float32x4_t even = vmulq_f32(d[r], by), odd = vmulq_f32(d[r + 1], by);
            SP_SETTLE(even);
            SP_SETTLE(odd);
            acc[p][r] = vfmaq_f32(acc[p][r], vcvtq_f32_s32(dot[p][r]), even);
            acc[p][r + 1] = vfmaq_f32(acc[p][r + 1], vcvtq_f32_s32(dot[p][r + 1]), odd);
            SP_SETTLE(acc[p][r]);
            SP_SETTLE(acc[p][r + 1]);
        }
    }
    if (kind != SP_WEIGHT_Q4A) return;
    sp_load_pair_scales(d, scales + SP_BLOCK_SCALES / sizeof *scales, vectors);
    SP_UNROLL
    for (int p = 0; p < pairs; p++) {
        if (p % 2 == 0) sp_load_two(v, more, p, pairs);
        SP_UNROLL
        for (int r = 0; r < 2 * vectors; r++) {
            acc[p][r] = vfmaq_f32(acc[p][r], d[r], vreinterpretq_f32_s32(v[p % 2]));
            SP_SETTLE(acc[p][r]);
        }
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
    const size_t group = (kind == SP_WEIGHT_Q8S ? 20 : 24) * (size_t)pairs;
    const int32_t *const end = z->v + (g1 - g0) * group;
    for (const int32_t *v = z->v; v < end; v += 2 * group, scales += block, data += block) {
        sp_group_smmla(kind, pairs, vectors, scales, data, v, acc);
        sp_group_smmla(kind, pairs, vectors, scales + 32, data + (kind == SP_WEIGHT_Q8S ? 512 : 256), v + group, acc);
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
    for (size_t g = 0; g < groups; g += SP_CHUNK) {
        const size_t end = g + SP_CHUNK < groups ? g + SP_CHUNK : groups;
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
        case 5: sp_tokens_sdot(kind, 5, true, args, 0); break;
        case 6: sp_tokens_smmla(kind, 6, true, args, &z, 0); break;
        case 7: sp_tokens_smmla(kind, 7, true, args, &z, 0); break;
        case 8: sp_tokens_smmla(kind, 8, true, args, &z, 0); break;
        case 9: sp_tokens_smmla(kind, 8, false, args, &z, 0); break;
        case 10: sp_tokens_smmla(kind, 10, true, args, &z, 0); break;
        case 11: sp_tokens_smmla(kind, 11, true, args, &z, 0); break;
        case 12: sp_tokens_smmla(kind, 12, true, args, &z, 0); break;
        case 14: sp_tokens_smmla(kind, 10, false, args, &z, 0); break;
        default: sp_tokens_smmla(kind, 12, false, args, &z, 0); break;
    }
    if (args->m == 9 || args->m == 13) sp_tokens_sdot(kind, 1, false, args, args->m - 1);
    else if (args->m > SP_MOST_TOKENS) sp_tokens_smmla(kind, 4, false, args, &z, args->m - 4);
}

SP_TEMPLATE void sp_gemm_q_smmla(sp_weight_kind kind, const sp_gemm_q_args *given) {
    const sp_gemm_q_args args = *given;
    if (args.m != args.width) sp_part_sdot(kind, &args);
    else if (args.m >= 4) sp_whole_smmla(kind, &args);
    else if (args.m == 3) sp_tokens_sdot(kind, 3, true, &args, 0);
    else if (args.m == 2) sp_tokens_sdot(kind, 2, true, &args, 0);
    else sp_tokens_sdot(kind, 1, true, &args, 0);
    sp_odd_group_neon(kind, sp_dots_sdot, &args);
}
