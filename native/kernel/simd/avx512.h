// SPDX-License-Identifier: Apache-2.0
// What the AVX-512 kernels share: exp2, the 16 lanes of a row sum in one register, masks for the ends of rows.
// Included by `_avx512.c` files alone.
#pragma once

#include <immintrin.h>
#include <stddef.h>

#include "kernel/softmax/exp2.h"

// 2^x in the lanes of `keep`, +0 elsewhere (kernel/softmax/exp2.h). x in a kept lane is -126..127 or NaN.
static inline __m512 sp_exp2_kept_avx512(__m512 x, __mmask16 keep) {
    const __m512 n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512 f = _mm512_sub_ps(x, n);
    __m512 p = _mm512_set1_ps(SP_EXP2_C6);
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(SP_EXP2_C5));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(SP_EXP2_C4));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(SP_EXP2_C3));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(SP_EXP2_C2));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(SP_EXP2_C1));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f));
    return _mm512_maskz_scalef_ps(keep, p, n);
}

// 2^x for x <= 127 or NaN.
static inline __m512 sp_exp2_small_avx512(__m512 x) {
    return sp_exp2_kept_avx512(x, _mm512_cmp_ps_mask(x, _mm512_set1_ps(SP_EXP2_MIN), _CMP_NLT_UQ));
}

// 2^x for any x. The operand order of min matters: NaN stays NaN.
static inline __m512 sp_exp2_avx512(__m512 x) {
    return sp_exp2_small_avx512(_mm512_min_ps(_mm512_set1_ps(SP_EXP2_MAX), x));
}

// g / (1 + exp2(-g * log2e)).
static inline __m512 sp_silu_avx512(__m512 g) {
    const __m512 e = sp_exp2_avx512(_mm512_mul_ps(g, _mm512_set1_ps(-SP_LOG2E)));
    return _mm512_div_ps(g, _mm512_add_ps(_mm512_set1_ps(1.0f), e));
}

// The tree over 16 lanes.
static inline float sp_lanes_sum_avx512(__m512 lanes) {
    const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps(lanes, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

// The first `count` lanes, all 16 if count >= 16.
static inline __mmask16 sp_first_avx512(size_t count) {
    return count >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << count) - 1);
}
