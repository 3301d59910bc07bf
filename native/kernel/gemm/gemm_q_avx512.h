// SPDX-License-Identifier: Apache-2.0
// Quantised products with VNNI: weights are the unsigned operand in a register, activations the signed one,
// broadcast from memory four bytes at a time. Weights are used as q + bias (8 for 4-bit, 128 for 8-bit values), so
// a token's accumulator starts from -bias * sum(a): the negated sums that come with the activations, shifted.
//
// Eight tokens are in flight: their 8 integer and 8 float accumulators fit the register file, and 8 chains hide the
// latency of the dot product. The bound is the two float operations per 8 dot products: 80 % of the VNNI peak.
#pragma once

#include <immintrin.h>

#include "kernel/gemm/gemm.h"

enum {
    SP_GEMM_TOKENS = 8,
    SP_AHEAD = 4096,  // bytes: the weights of a batch come from memory, and several tokens' work on a line keeps the
                      // core from running far enough ahead by itself. One token's does not, and is slower with it.
};

// Inline assembly keeps the memory-broadcast form: with the intrinsic, gcc 12 copies accumulators between registers.
SP_TEMPLATE __m512i sp_dot_bcast(__m512i acc, __m512i w, const int8_t *a) {
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(w), "m"(*(const int32_t *)a));
    return acc;
}

SP_TEMPLATE void sp_gemm_q_avx512_m(sp_weight_kind kind, const sp_gemm_q_args *args, size_t t0, const int m) {
    const size_t width = args->width, quad = 4 * width;
    const __m512i low = _mm512_set1_epi8(15), flip = _mm512_set1_epi8((char)0x80);
    const int8_t *a = args->a + 4 * t0;
    const float *ad = args->ad + t0, *as = args->as + t0;
    const int32_t *an = args->an + t0;
    __m512 acc[SP_GEMM_TOKENS];
    SP_UNROLL
    for (int t = 0; t < m; t++) acc[t] = _mm512_setzero_ps();

    for (size_t g = 0; g < args->groups; g++) {
        const sp_weight_group w = sp_weight_group_at(kind, args->w, g);
        __m512i dot[SP_GEMM_TOKENS];
        SP_UNROLL
        for (int t = 0; t < m; t++)
            if (kind == SP_WEIGHT_Q4A) dot[t] = _mm512_setzero_si512();
            else dot[t] = _mm512_slli_epi32(_mm512_set1_epi32(an[t]), kind == SP_WEIGHT_Q4S ? 3 : 7);
        for (int line = 0; line < (kind == SP_WEIGHT_Q8S ? 8 : 4); line++) {
            const __m512i v = _mm512_load_si512(w.data + 64 * line);
            if (m > 1) _mm_prefetch((const char *)w.data + 64 * line + SP_AHEAD, _MM_HINT_T0);
            if (kind == SP_WEIGHT_Q8S) {
                const __m512i u = _mm512_xor_si512(v, flip);
                SP_UNROLL
                for (int t = 0; t < m; t++) dot[t] = sp_dot_bcast(dot[t], u, a + 4 * t);
                a += quad;
            } else {
                const __m512i even = _mm512_and_si512(v, low);
                const __m512i odd = _mm512_and_si512(_mm512_srli_epi16(v, 4), low);
                SP_UNROLL
                for (int t = 0; t < m; t++) dot[t] = sp_dot_bcast(dot[t], even, a + 4 * t);
                SP_UNROLL
                for (int t = 0; t < m; t++) dot[t] = sp_dot_bcast(dot[t], odd, a + quad + 4 * t);
                a += 2 * quad;
            }
        }
        const __m512 d = _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)w.scales));
        SP_UNROLL
        for (int t = 0; t < m; t++) {
            const __m512 scale = _mm512_mul_ps(d, _mm512_set1_ps(ad[t]));
            acc[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[t]), scale, acc[t]);
        }
        if (kind == SP_WEIGHT_Q4A) {
            const __m512 min = _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)w.minima));
            SP_UNROLL
            for (int t = 0; t < m; t++) acc[t] = _mm512_fmadd_ps(min, _mm512_set1_ps(as[t]), acc[t]);
        }
        ad += width, as += width, an += width;
    }
    SP_UNROLL
    for (int t = 0; t < m; t++) _mm512_storeu_ps(args->y + (t0 + (size_t)t) * args->ldy, acc[t]);
}

SP_TEMPLATE void sp_gemm_q_avx512(sp_weight_kind kind, const sp_gemm_q_args *args) {
    for (size_t t = 0; t < args->m; t += SP_GEMM_TOKENS) {
        const size_t left = args->m - t;
        switch (left < SP_GEMM_TOKENS ? left : SP_GEMM_TOKENS) {
            case 1: sp_gemm_q_avx512_m(kind, args, t, 1); break;
            case 2: sp_gemm_q_avx512_m(kind, args, t, 2); break;
            case 3: sp_gemm_q_avx512_m(kind, args, t, 3); break;
            case 4: sp_gemm_q_avx512_m(kind, args, t, 4); break;
            case 5: sp_gemm_q_avx512_m(kind, args, t, 5); break;
            case 6: sp_gemm_q_avx512_m(kind, args, t, 6); break;
            case 7: sp_gemm_q_avx512_m(kind, args, t, 7); break;
            default: sp_gemm_q_avx512_m(kind, args, t, 8); break;
        }
    }
}
