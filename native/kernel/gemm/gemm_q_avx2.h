// SPDX-License-Identifier: Apache-2.0
// Quantised products without VNNI: unsigned x signed bytes to int16 pairs, pairs to int32. The int16 step never
// saturates: 4-bit weights give at most 2 * 15 * 127; 8-bit ones are used as |w| with the sign moved to the
// activation, at most 2 * 128 * 127.
//
// A panel's 16 rows are two registers. Two tokens are in flight, which the 16 registers hold without spilling.
#pragma once

#include <immintrin.h>
#include <string.h>

#include "kernel/gemm/gemm.h"

enum { SP_GEMM_TOKENS = 2 };

SP_TEMPLATE __m256i sp_quad_bcast(const int8_t *a) {
    int32_t quad;
    memcpy(&quad, a, sizeof quad);
    return _mm256_set1_epi32(quad);
}

// acc + the dot products of eight rows' quads with one token's quad.
SP_TEMPLATE __m256i sp_dot_quad(sp_weight_kind kind, __m256i acc, __m256i w, __m256i a) {
    const __m256i pairs = kind == SP_WEIGHT_Q8S ? _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w))
                                                : _mm256_maddubs_epi16(w, a);
    return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

SP_TEMPLATE void sp_gemm_q_avx2_m(sp_weight_kind kind, const sp_gemm_q_args *args, size_t t0, const int m) {
    const size_t width = args->width, quad = 4 * width;
    const __m256i low = _mm256_set1_epi8(15);
    const int8_t *a = args->a + 4 * t0;
    __m256 acc[SP_GEMM_TOKENS][2];
    SP_UNROLL
    for (int t = 0; t < m; t++) acc[t][0] = acc[t][1] = _mm256_setzero_ps();

    for (size_t g = 0; g < args->groups; g++) {
        const size_t at = g * width + t0;
        const sp_weight_group w = sp_weight_group_at(kind, args->w, g);
        __m256i dot[SP_GEMM_TOKENS][2];
        SP_UNROLL
        for (int t = 0; t < m; t++) {
            dot[t][0] =
                kind == SP_WEIGHT_Q4S ? _mm256_set1_epi32(args->an[at + (size_t)t] * 8) : _mm256_setzero_si256();
            dot[t][1] = dot[t][0];
        }
        for (int line = 0; line < (kind == SP_WEIGHT_Q8S ? 8 : 4); line++) {
            for (int half = 0; half < 2; half++) {
                const __m256i v = _mm256_load_si256((const __m256i *)(w.data + 64 * line + 32 * half));
                const __m256i even = kind == SP_WEIGHT_Q8S ? v : _mm256_and_si256(v, low);
                SP_UNROLL
                for (int t = 0; t < m; t++)
                    dot[t][half] = sp_dot_quad(kind, dot[t][half], even, sp_quad_bcast(a + 4 * t));
                if (kind == SP_WEIGHT_Q8S) continue;
                const __m256i odd = _mm256_and_si256(_mm256_srli_epi16(v, 4), low);
                SP_UNROLL
                for (int t = 0; t < m; t++)
                    dot[t][half] = sp_dot_quad(kind, dot[t][half], odd, sp_quad_bcast(a + quad + 4 * t));
            }
            a += kind == SP_WEIGHT_Q8S ? quad : 2 * quad;
        }
        for (int half = 0; half < 2; half++) {
            const __m256 d = _mm256_cvtph_ps(_mm_load_si128((const __m128i *)(w.scales + 8 * half)));
            SP_UNROLL
            for (int t = 0; t < m; t++) {
                const __m256 scale = _mm256_mul_ps(d, _mm256_set1_ps(args->ad[at + (size_t)t]));
                acc[t][half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot[t][half]), scale, acc[t][half]);
            }
            if (kind != SP_WEIGHT_Q4A) continue;
            const __m256 min = _mm256_cvtph_ps(_mm_load_si128((const __m128i *)(w.minima + 8 * half)));
            SP_UNROLL
            for (int t = 0; t < m; t++)
                acc[t][half] = _mm256_fmadd_ps(min, _mm256_set1_ps(args->as[at + (size_t)t]), acc[t][half]);
        }
    }
    SP_UNROLL
    for (int t = 0; t < m; t++) {
        float *y = args->y + (t0 + (size_t)t) * args->ldy;
        _mm256_storeu_ps(y, acc[t][0]);
        _mm256_storeu_ps(y + 8, acc[t][1]);
    }
}

SP_TEMPLATE void sp_gemm_q_avx2(sp_weight_kind kind, const sp_gemm_q_args *args) {
    size_t t = 0;
    for (; t + SP_GEMM_TOKENS <= args->m; t += SP_GEMM_TOKENS) sp_gemm_q_avx2_m(kind, args, t, SP_GEMM_TOKENS);
    if (t < args->m) sp_gemm_q_avx2_m(kind, args, t, 1);
}
