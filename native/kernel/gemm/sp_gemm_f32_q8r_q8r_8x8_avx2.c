// SPDX-License-Identifier: Apache-2.0
// The product with one scale per row, without VNNI: unsigned by signed bytes to int16 pairs, pairs to int32. |w| is the
// unsigned operand, at most 2 * 127 * 128, so nothing saturates; its sign goes to the activation.
//
// VPSIGNB would do that, but shares the multipliers' ports on Zen 4. With m = w < 0 ? -1 : 0, -a is (a ^ m) + 1, so
//
//     sum of w * a  =  sum of |w| * (a ^ m)  +  sum of |w| where w < 0
//
// and the last sum, which no token changes, is where accumulators start from. What is left for 32 products is an XOR,
// the two multiplications and an addition, which keep four vector ports busy, and a broadcast. The peak of this
// instruction set, without the XOR and the broadcast, takes 1 cycle for them; this loop takes 1.28 on Zen 4, with
// VPSIGNB 1.6.
//
// The tile is 8 tokens x 8 rows, half a panel: |w| and m, made anew for each tile, serve eight products. Weights stand
// still, panels of tokens stream past them, and the next one is asked for in time.
#include <immintrin.h>
#include <string.h>

#include "kernel/gemm/gemm.h"

enum { TOKENS = 8, ROWS = 8 };

SP_TEMPLATE __m256i quad_bcast(const int8_t *a) {
    int32_t quad;
    memcpy(&quad, a, sizeof quad);
    return _mm256_set1_epi32(quad);
}

SP_TEMPLATE __m256i load_rows(const int8_t *w) { return _mm256_load_si256((const __m256i *)(const void *)w); }

SP_TEMPLATE __m256i below_zero(__m256i w) { return _mm256_cmpgt_epi8(_mm256_setzero_si256(), w); }

// acc + the dot products of eight rows' quads with one token's.
SP_TEMPLATE __m256i dot_quad(__m256i acc, __m256i size, __m256i a) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(size, a), _mm256_set1_epi16(1)));
}

// The sums of |w| where w < 0, of eight rows.
static __m256i sum_negatives(const int8_t *w, size_t panel) {
    __m256i sum = _mm256_setzero_si256();
    for (size_t at = 0; at < panel; at += 64) {
        const __m256i v = load_rows(w + at);
        sum = dot_quad(sum, _mm256_and_si256(_mm256_abs_epi8(v), below_zero(v)), _mm256_set1_epi8(1));
    }
    return sum;
}

// Tokens t0.. against eight rows from r0. Of the `tokens` that are computed the first `count` exist; the panel holds
// bytes for the others too, and their results are dropped.
SP_TEMPLATE void tile(const sp_gemm_r_args *args, __m256i start, size_t t0, size_t r0, const int tokens, size_t count) {
    const size_t panel = 16 * args->k;
    const int8_t *a = args->a + t0 / 16 * panel + t0 % 16 * 4, *w = args->w + r0 / 16 * panel + r0 % 16 * 4;
    __m256i acc[TOKENS];
    SP_UNROLL
    for (int t = 0; t < tokens; t++) acc[t] = start;
    for (size_t at = 0; at < panel; at += 64) {
        const __m256i v = load_rows(w + at), size = _mm256_abs_epi8(v), m = below_zero(v);
        _mm_prefetch((const char *)a + panel + at, _MM_HINT_T1);
        SP_UNROLL
        for (int t = 0; t < tokens; t++)
            acc[t] = dot_quad(acc[t], size, _mm256_xor_si256(quad_bcast(a + at + 4 * t), m));
    }
    const __m256 wd = _mm256_loadu_ps(args->wd + r0);
    SP_UNROLL
    for (int t = 0; t < tokens; t++) {
        if ((size_t)t >= count) break;
        const __m256 scale = _mm256_mul_ps(wd, _mm256_set1_ps(args->ad[t0 + (size_t)t]));
        float *y = args->y + (t0 + (size_t)t) * args->ldy + r0;
        _mm256_storeu_ps(y, _mm256_mul_ps(_mm256_cvtepi32_ps(acc[t]), scale));
    }
}

void sp_gemm_f32_q8r_q8r_8x8_avx2(const sp_gemm_r_args *args) {
    const size_t panel = 16 * args->k;
    for (size_t r = 0; r < args->n; r += ROWS) {
        const __m256i start = sum_negatives(args->w + r / 16 * panel + r % 16 * 4, panel);
        for (size_t t = 0; t < args->m; t += TOKENS) {
            const size_t left = args->m - t;
            if (left > TOKENS / 2) tile(args, start, t, r, TOKENS, left < TOKENS ? left : TOKENS);
            else tile(args, start, t, r, TOKENS / 2, left);
        }
    }
}
