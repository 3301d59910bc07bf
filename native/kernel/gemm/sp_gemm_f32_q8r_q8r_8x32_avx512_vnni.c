// SPDX-License-Identifier: Apache-2.0
// The product with one scale per row, with VNNI. Weights are the unsigned operand: w + 128, one flipped bit per byte,
// so a token's accumulators start from -128 * sum(a). Activations are the signed one, four bytes broadcast to 16 rows.
//
// The tile is 8 tokens x 32 rows: 8 divides a panel of tokens, 16 accumulators hide the latency of the dot product on
// cores with one or two such units, and a broadcast in a register serves two dot products, so that 10 loads feed 16 of
// them. Measured on Zen 4, 16 x 16, 8 x 48 and 4 x 96 are as fast within the noise.
//
// Weights stand still: a block that keeps to a part of the second-level cache, while panels of tokens stream past it
// from wherever they are. The next panel is asked for in time, which is worth a tenth at k = 8192 when others use the
// last-level cache too. Results of a panel of tokens are written row by row of the block, so that rows of y far apart
// are not opened for a line each.
#include <immintrin.h>
#include <string.h>

#include "kernel/gemm/gemm.h"

enum {
    TOKENS = 8,
    PANELS = 2,
    BLOCK = 256 << 10,  // bytes of weights
};

// acc + the dot products of 16 rows' quads with one token's. Inline assembly keeps the accumulator where it is: with
// the intrinsic, gcc 12 copies accumulators between registers.
SP_TEMPLATE __m512i dot_quad(__m512i acc, __m512i w, __m512i a) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(w), "v"(a));
    return acc;
}

SP_TEMPLATE __m512i quad_bcast(const int8_t *a) {
    int32_t quad;
    memcpy(&quad, a, sizeof quad);
    return _mm512_set1_epi32(quad);
}

// Tokens t0.. against `panels` panels of rows from r0. Of the `tokens` that are computed the first `count` exist; the
// panel holds bytes for the others too, and their results are dropped.
SP_TEMPLATE void tile(const sp_gemm_r_args *args, size_t t0, size_t r0, const int tokens, const int panels,
                      size_t count) {
    const size_t panel = 16 * args->k;
    const __m512i flip = _mm512_set1_epi8((char)0x80);
    const int8_t *a = args->a + t0 / 16 * panel + t0 % 16 * 4, *w = args->w + r0 / 16 * panel;
    __m512i acc[TOKENS][PANELS];
    SP_UNROLL
    for (int t = 0; t < tokens; t++) {
        const __m512i start = _mm512_set1_epi32((size_t)t < count ? args->an[t0 + (size_t)t] * 128 : 0);
        SP_UNROLL
        for (int p = 0; p < panels; p++) acc[t][p] = start;
    }
    for (size_t at = 0; at < panel; at += 64) {
        __m512i v[PANELS];
        SP_UNROLL
        for (int p = 0; p < panels; p++) v[p] = _mm512_xor_si512(_mm512_load_si512(w + (size_t)p * panel + at), flip);
        _mm_prefetch((const char *)a + panel + at, _MM_HINT_T1);
        SP_UNROLL
        for (int t = 0; t < tokens; t++) {
            const __m512i quad = quad_bcast(a + at + 4 * t);
            SP_UNROLL
            for (int p = 0; p < panels; p++) acc[t][p] = dot_quad(acc[t][p], v[p], quad);
        }
    }
    SP_UNROLL
    for (int t = 0; t < tokens; t++) {
        if ((size_t)t >= count) break;
        const __m512 ad = _mm512_set1_ps(args->ad[t0 + (size_t)t]);
        float *y = args->y + (t0 + (size_t)t) * args->ldy + r0;
        SP_UNROLL
        for (int p = 0; p < panels; p++) {
            const __m512 scale = _mm512_mul_ps(_mm512_loadu_ps(args->wd + r0 + 16 * p), ad);
            _mm512_storeu_ps(y + 16 * p, _mm512_mul_ps(_mm512_cvtepi32_ps(acc[t][p]), scale));
        }
    }
}

// Up to eight tokens against `panels` panels.
SP_TEMPLATE void some_tokens(const sp_gemm_r_args *args, size_t t0, size_t r0, const int panels) {
    const size_t left = args->m - t0;
    if (left > TOKENS / 2) tile(args, t0, r0, TOKENS, panels, left < TOKENS ? left : TOKENS);
    else tile(args, t0, r0, TOKENS / 2, panels, left);
}

// One panel of tokens against rows first..last-1.
static void token_panel(const sp_gemm_r_args *args, size_t t0, size_t first, size_t last) {
    for (size_t r = first; r < last; r += 16 * PANELS) {
        for (size_t t = t0; t < t0 + 16 && t < args->m; t += TOKENS)
            if (r + 16 < last) some_tokens(args, t, r, PANELS);
            else some_tokens(args, t, r, 1);
    }
}

void sp_gemm_f32_q8r_q8r_8x32_avx512_vnni(const sp_gemm_r_args *args) {
    const size_t pairs = BLOCK / (args->k * 16 * PANELS), rows = 16 * PANELS * (pairs ? pairs : 1);
    for (size_t r = 0; r < args->n; r += rows)
        for (size_t t = 0; t < args->m; t += 16) token_panel(args, t, r, args->n - r < rows ? args->n : r + rows);
}
