// SPDX-License-Identifier: Apache-2.0
// What the AVX2 kernels share: exp2, and the 16 lanes of a row sum held in two registers.
// Included by `_avx2.c` files alone.
#pragma once

#include <immintrin.h>

#include "kernel/softmax/exp2.h"

// 2^x for x <= 127 or NaN (kernel/softmax/exp2.h). Adding 1.5 * 2^23 rounds x to an integer, ties to even, and leaves
// that integer in the low bits. The product, unlike an addition to the exponent, keeps every NaN a NaN.
static inline __m256 sp_exp2_small_avx2(__m256 x) {
    const __m256 magic = _mm256_set1_ps(0x1.8p23f);
    const __m256 keep = _mm256_cmp_ps(x, _mm256_set1_ps(SP_EXP2_MIN), _CMP_NLT_UQ);
    const __m256 t = _mm256_add_ps(x, magic);
    const __m256 f = _mm256_sub_ps(x, _mm256_sub_ps(t, magic));
    __m256 p = _mm256_set1_ps(SP_EXP2_C6);
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(SP_EXP2_C5));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(SP_EXP2_C4));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(SP_EXP2_C3));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(SP_EXP2_C2));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(SP_EXP2_C1));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(1.0f));
    const __m256i biased = _mm256_add_epi32(_mm256_castps_si256(t), _mm256_set1_epi32(127));
    const __m256 scale = _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
    return _mm256_and_ps(_mm256_mul_ps(p, scale), keep);
}

// 2^x for any x. The operand order of min matters: NaN stays NaN.
static inline __m256 sp_exp2_avx2(__m256 x) {
    return sp_exp2_small_avx2(_mm256_min_ps(_mm256_set1_ps(SP_EXP2_MAX), x));
}

// g / (1 + exp2(-g * log2e)).
static inline __m256 sp_silu_avx2(__m256 g) {
    const __m256 e = sp_exp2_avx2(_mm256_mul_ps(g, _mm256_set1_ps(-SP_LOG2E)));
    return _mm256_div_ps(g, _mm256_add_ps(_mm256_set1_ps(1.0f), e));
}

// The tree over lanes 0-7 (`low`) and 8-15 (`high`).
static inline float sp_lanes_sum_avx2(__m256 low, __m256 high) {
    const __m256 a = _mm256_add_ps(low, high);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}
