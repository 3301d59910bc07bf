// SPDX-License-Identifier: Apache-2.0
// Activations as SMMLA reads them. Panels hold quads of tokens, [k/4][tokens][4]; the instruction wants eight k of two
// tokens, so two neighbouring quads are zipped by 32 bits. That is done once for a stretch of k, for all passes over
// the rows: a store that interleaves two registers (ST2) zips four tokens at no cost of its own.
//
// The results lie two tokens by two rows. What they are scaled with is zipped with itself, so that it lies likewise.
#pragma once

#include "kernel/gemm/gemm_q_walk_neon.h"

enum { SP_MOST_PAIRS = SP_MOST_TOKENS / 2 };

// Activations of a chunk for one block of tokens, as they are read: for each group, for each two neighbouring quads the
// pairs of tokens, [token][8 bytes]; then scales, [pair][token][2]; then likewise 8 * an or, of affine weights, as.
// What is stored past the last pair is the next one's place.
typedef struct sp_zipped {
    int32_t v[SP_CHUNK * 24 * SP_MOST_PAIRS + 4];
} sp_zipped;

// Tokens go in vectors of four, two pairs each. The last vector of a ragged block overlaps the one before, as do its
// pairs if it brings but one or two new tokens. Among more tokens, whole vectors are there to be read.
SP_TEMPLATE int sp_pairs(const int tokens) { return (tokens + 1) / 2; }
SP_TEMPLATE int sp_pair_first(const int tokens, const bool whole, const int pair) {
    const int last = sp_pairs(tokens) - 2;
    return whole && pair >= last ? tokens - 4 + 2 * (pair - last) : 2 * pair;
}

// Stores x and y of the block's tokens zipped by 32 bits, or eight times x with itself, and returns where the next ones
// go.
SP_TEMPLATE int32_t *sp_zip_tokens(int32_t *dst, const int32_t *x, const int32_t *y, const int tokens, const bool whole,
                                   const bool eightfold, size_t pair) {
    int32x4x2_t v[SP_TOKEN_VECTORS];
    SP_UNROLL
    for (int t = 0; t < tokens; t += 4) v[t / 4].val[0] = vld1q_s32(x + (t + 4 <= tokens || !whole ? t : tokens - 4));
    SP_UNROLL
    for (int t = 0; t < tokens; t += 4) {
        const int from = t + 4 <= tokens || !whole ? t : tokens - 4;
        if (eightfold) v[t / 4].val[0] = vshlq_n_s32(v[t / 4].val[0], 3);
        v[t / 4].val[1] = x == y ? v[t / 4].val[0] : vld1q_s32(y + from);
    }
    SP_UNROLL
    for (int t = 0; t < tokens; t += 4) {
        vst2q_s32(dst, v[t / 4]);
        dst += t + (whole ? 4 : 0) < tokens && t + (whole ? 6 : 2) >= tokens ? pair : 8;
        SP_STEP(dst);
    }
    return dst;
}

SP_TEMPLATE void sp_zip_chunk(sp_weight_kind kind, sp_zipped *z, const int tokens, const bool whole,
                              const sp_gemm_q_args *args, size_t t0, size_t g0, size_t g1) {
    const size_t width = whole ? (size_t)tokens : args->width, at = g0 * width + t0;
    const int32_t *a = (const int32_t *)(const void *)args->a + g0 * (SP_GROUP / 4) * width + t0;
    const int32_t *ad = (const int32_t *)(const void *)(args->ad + at), *an = args->an + at;
    const int32_t *as = (const int32_t *)(const void *)(args->as + at);
    int32_t *dst = z->v;
    size_t pair = 4;  // in a register, by which a store can step on
    SP_STEP(pair);
    // The last four tokens of a quad and the first ones of the next are neighbours: one load, counted from there.
    const size_t last = whole ? (size_t)tokens - 4 : 0;
    a += last;
    for (size_t g = g0; g < g1; g++) {
        SP_STEP(a);
        SP_UNROLL
        for (int q = 0; q < 4; q++, a += 2 * width)
            dst = sp_zip_tokens(dst, a - last, a - last + width, tokens, whole, false, pair);
        dst = sp_zip_tokens(dst, ad, ad, tokens, whole, false, pair);
        if (kind == SP_WEIGHT_Q4A) dst = sp_zip_tokens(dst, as, as, tokens, whole, false, pair);
        if (kind == SP_WEIGHT_Q4S) dst = sp_zip_tokens(dst, an, an, tokens, whole, true, pair);
        ad += width, as += width, an += width;
    }
}
