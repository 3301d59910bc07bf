// SPDX-License-Identifier: Apache-2.0
// The product with one scale per row, without VNNI: |w| times the activation with w's sign, unsigned by signed bytes,
// to int16 pairs (at most 2 * 127 * 127, so nothing saturates), pairs to int32. A panel's 16 rows are two registers;
// |w| and w of both serve four tokens, whose eight accumulators leave room for them.
//
// Two multiplications and an addition of 32 products are the peak of this instruction set; the fourth instruction, for
// the sign, runs beside the multiplier on cores that have a place for it. The ways round it cost as much: with both
// operands widened to int16 it takes two multiplications and two additions, in nibbles more.
#include <immintrin.h>
#include <string.h>

#include "kernel/gemm/gemm.h"

enum { TOKENS = 4, HALVES = 2 };

SP_TEMPLATE __m256i quad_bcast(const int8_t *a) {
    int32_t quad;
    memcpy(&quad, a, sizeof quad);
    return _mm256_set1_epi32(quad);
}

// acc + the dot products of eight rows' quads with one token's.
SP_TEMPLATE __m256i dot_quad(__m256i acc, __m256i size, __m256i w, __m256i a) {
    const __m256i pairs = _mm256_maddubs_epi16(size, _mm256_sign_epi8(a, w));
    return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

// Tokens t0.. against the panel of rows from r0. Of the `tokens` that are computed the first `count` exist; the panel
// holds bytes for the others too, and their results are dropped.
SP_TEMPLATE void tile(const sp_gemm_r_args *args, size_t t0, size_t r0, const int tokens, int count) {
    const size_t panel = 16 * args->k;
    const int8_t *a = args->a + t0 / 16 * panel + t0 % 16 * 4, *w = args->w + r0 / 16 * panel;
    __m256i acc[TOKENS][HALVES];
    SP_UNROLL
    for (int t = 0; t < tokens; t++) acc[t][0] = acc[t][1] = _mm256_setzero_si256();
    for (size_t at = 0; at < panel; at += 64) {
        SP_UNROLL
        for (int h = 0; h < HALVES; h++) {
            const __m256i v = _mm256_load_si256((const __m256i *)(const void *)(w + at + 32 * h));
            const __m256i size = _mm256_abs_epi8(v);
            SP_UNROLL
            for (int t = 0; t < tokens; t++) acc[t][h] = dot_quad(acc[t][h], size, v, quad_bcast(a + at + 4 * t));
        }
    }
    SP_UNROLL
    for (int t = 0; t < tokens; t++) {
        if (t >= count) break;
        const __m256 ad = _mm256_set1_ps(args->ad[t0 + (size_t)t]);
        float *y = args->y + (t0 + (size_t)t) * args->ldy + r0;
        SP_UNROLL
        for (int h = 0; h < HALVES; h++) {
            const __m256 scale = _mm256_mul_ps(_mm256_loadu_ps(args->wd + r0 + 8 * h), ad);
            _mm256_storeu_ps(y + 8 * h, _mm256_mul_ps(_mm256_cvtepi32_ps(acc[t][h]), scale));
        }
    }
}

void sp_gemm_f32_q8r_q8r_4x16_avx2(const sp_gemm_r_args *args) {
    for (size_t r = 0; r < args->n; r += 16) {
        for (size_t t = 0; t < args->m; t += TOKENS) {
            const size_t left = args->m - t;
            if (left == 1) tile(args, t, r, 1, 1);
            else tile(args, t, r, TOKENS, left < TOKENS ? (int)left : TOKENS);
        }
    }
}
