// SPDX-License-Identifier: Apache-2.0
// The lanes fix the chain of additions: two registers of eight lanes, one step every 16 elements.
#include <math.h>

#include "kernel/declare.h"
#include "kernel/simd/avx2.h"

void sp_rmsnorm_f32_f32_f32_1x16_avx2(float *y, const float *x, const float *w, size_t n, float eps) {
    __m256 low = _mm256_setzero_ps();
    __m256 high = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256 a = _mm256_loadu_ps(x + i);
        const __m256 b = _mm256_loadu_ps(x + i + 8);
        low = _mm256_fmadd_ps(a, a, low);
        high = _mm256_fmadd_ps(b, b, high);
    }
    if (i < n) {
        const __m256 a = _mm256_loadu_ps(x + i);
        low = _mm256_fmadd_ps(a, a, low);
    }
    const __m256 r = _mm256_set1_ps(1.0f / sqrtf(sp_lanes_sum_avx2(low, high) / (float)n + eps));
    for (i = 0; i < n; i += 8) {
        const __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x + i), r);
        _mm256_storeu_ps(y + i, _mm256_mul_ps(v, _mm256_loadu_ps(w + i)));
    }
}
