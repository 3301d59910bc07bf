// SPDX-License-Identifier: Apache-2.0
// Block maxima in one pass; the first block that holds the overall maximum is then searched for its place.
#include <math.h>

#include "kernel/declare.h"
#include "kernel/simd/avx512.h"

enum { BLOCK = 512 };  // values of a block

// Maximum per lane of up to BLOCK values; false if there is a NaN.
static inline bool block_max(const float *x, size_t n, __m512 *max) {
    const __m512 least = _mm512_set1_ps(-INFINITY);
    __m512 even = least, odd = least;
    __mmask16 nan = 0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m512 a = _mm512_loadu_ps(x + i);
        const __m512 b = _mm512_loadu_ps(x + i + 16);
        nan |= _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
        even = _mm512_max_ps(a, even);
        odd = _mm512_max_ps(b, odd);
    }
    for (; i < n; i += 16) {
        const __m512 a = _mm512_mask_loadu_ps(least, sp_first_avx512(n - i), x + i);
        nan |= _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
        even = _mm512_max_ps(a, even);
    }
    *max = _mm512_max_ps(even, odd);
    return nan == 0;
}

static inline size_t find(const float *x, size_t n, float value) {
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 m = sp_first_avx512(n - i);
        const __m512 v = _mm512_maskz_loadu_ps(m, x + i);
        const __mmask16 hit = _mm512_mask_cmp_ps_mask(m, v, _mm512_set1_ps(value), _CMP_EQ_OQ);
        if (hit) return i + (size_t)__builtin_ctz(hit);
    }
    return 0;
}

int64_t sp_argmax_i64_f32_1x16_avx512(const float *x, size_t n) {
    float best = -INFINITY;
    size_t start = 0;
    for (size_t i = 0; i < n; i += BLOCK) {
        __m512 max;
        if (!block_max(x + i, n - i < BLOCK ? n - i : BLOCK, &max)) return -1;
        if (_mm512_cmp_ps_mask(max, _mm512_set1_ps(best), _CMP_GT_OQ)) {
            best = _mm512_reduce_max_ps(max);
            start = i;
        }
    }
    return (int64_t)(start + find(x + start, n - start, best));
}
