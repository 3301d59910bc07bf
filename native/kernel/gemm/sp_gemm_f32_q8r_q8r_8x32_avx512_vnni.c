// SPDX-License-Identifier: Apache-2.0
// The product with one scale per row, with VNNI. Weights are the unsigned operand: w + 128, one flipped bit per byte,
// so a token's accumulators start from -128 * sum(a). Activations are the signed one, four bytes broadcast to 16 rows.
//
// The tile is 8 tokens x 32 rows: 8 divides a panel of tokens, 16 accumulators hide the latency of the dot product on
// cores with one or two such units, and a broadcast in a register serves two dot products, so that 10 loads feed 16 of
// them. Nothing else happens along k.
//
// Weights stand still: two panels, which fit the second-level cache beside the tokens that stream past them. Measured
// on Zen 4 for k = 576 to 8192, 16 x 16 and 8 x 48 are as fast within the noise, and so is cutting k for the
// first-level cache: a line of either operand lasts for 8 cycles or more, which the second level keeps up with.
#include <immintrin.h>
#include <string.h>

#include "kernel/gemm/gemm.h"

enum { TOKENS = 8, PANELS = 2 };

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
SP_TEMPLATE void tile(const sp_gemm_r_args *args, size_t t0, size_t r0, const int tokens, const int panels, int count) {
    const size_t panel = 16 * args->k;
    const __m512i flip = _mm512_set1_epi8((char)0x80);
    const int8_t *a = args->a + t0 / 16 * panel + t0 % 16 * 4, *w = args->w + r0 / 16 * panel;
    __m512i acc[TOKENS][PANELS];
    SP_UNROLL
    for (int t = 0; t < tokens; t++) {
        const __m512i start = _mm512_set1_epi32(t < count ? args->an[t0 + (size_t)t] * 128 : 0);
        SP_UNROLL
        for (int p = 0; p < panels; p++) acc[t][p] = start;
    }
    for (size_t at = 0; at < panel; at += 64) {
        __m512i v[PANELS];
        SP_UNROLL
        for (int p = 0; p < panels; p++) v[p] = _mm512_xor_si512(_mm512_load_si512(w + (size_t)p * panel + at), flip);
        SP_UNROLL
        for (int t = 0; t < tokens; t++) {
            const __m512i quad = quad_bcast(a + at + 4 * t);
            SP_UNROLL
            for (int p = 0; p < panels; p++) acc[t][p] = dot_quad(acc[t][p], v[p], quad);
        }
    }
    SP_UNROLL
    for (int t = 0; t < tokens; t++) {
        if (t >= count) break;
        const __m512 ad = _mm512_set1_ps(args->ad[t0 + (size_t)t]);
        float *y = args->y + (t0 + (size_t)t) * args->ldy + r0;
        SP_UNROLL
        for (int p = 0; p < panels; p++) {
            const __m512 scale = _mm512_mul_ps(_mm512_loadu_ps(args->wd + r0 + 16 * p), ad);
            _mm512_storeu_ps(y + 16 * p, _mm512_mul_ps(_mm512_cvtepi32_ps(acc[t][p]), scale));
        }
    }
}

// All tokens against `panels` panels: eights, then one tile of eight or four for the rest.
SP_TEMPLATE void all_tokens(const sp_gemm_r_args *args, size_t r0, const int panels) {
    size_t t = 0;
    for (; t + TOKENS / 2 < args->m; t += TOKENS) {
        const size_t left = args->m - t;
        tile(args, t, r0, TOKENS, panels, left < TOKENS ? (int)left : TOKENS);
    }
    if (t < args->m) tile(args, t, r0, TOKENS / 2, panels, (int)(args->m - t));
}

void sp_gemm_f32_q8r_q8r_8x32_avx512_vnni(const sp_gemm_r_args *args) {
    size_t r = 0;
    for (; r + 16 * PANELS <= args->n; r += 16 * PANELS) all_tokens(args, r, PANELS);
    if (r < args->n) all_tokens(args, r, 1);
}
