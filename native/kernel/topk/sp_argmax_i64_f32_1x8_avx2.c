// SPDX-License-Identifier: Apache-2.0
// Block maxima in one pass; the first block that holds the overall maximum is then searched for its place.
#include <math.h>

#include "kernel/declare.h"
#include "kernel/simd/avx2.h"

enum { BLOCK = 512 };  // values of a block

// Maximum of up to BLOCK values; NaN if there is one among them.
static inline float block_max(const float *x, size_t n) {
    __m256 even = _mm256_set1_ps(-INFINITY), odd = even, nan = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256 a = _mm256_loadu_ps(x + i);
        const __m256 b = _mm256_loadu_ps(x + i + 8);
        nan = _mm256_or_ps(nan, _mm256_cmp_ps(a, b, _CMP_UNORD_Q));
        even = _mm256_max_ps(a, even);
        odd = _mm256_max_ps(b, odd);
    }
    if (_mm256_movemask_ps(nan)) return NAN;
    const __m256 both = _mm256_max_ps(even, odd);
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(both), _mm256_extractf128_ps(both, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    float max = _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
    for (; i < n; i++) {
        if (x[i] != x[i]) return NAN;
        max = x[i] > max ? x[i] : max;
    }
    return max;
}

static inline size_t find(const float *x, size_t n, float value) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 hit = _mm256_cmp_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(value), _CMP_EQ_OQ);
        const int bits = _mm256_movemask_ps(hit);
        if (bits) return i + (size_t)__builtin_ctz((unsigned)bits);
    }
    while (i < n && x[i] != value) i++;
    return i;
}

int64_t sp_argmax_i64_f32_1x8_avx2(const float *x, size_t n) {
    float best = -INFINITY;
    size_t start = 0;
    for (size_t i = 0; i < n; i += BLOCK) {
        const float max = block_max(x + i, n - i < BLOCK ? n - i : BLOCK);
        if (max != max) return -1;
        if (max > best) {
            best = max;
            start = i;
        }
    }
    return (int64_t)(start + find(x + start, n - start, best));
}
