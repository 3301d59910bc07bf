// SPDX-License-Identifier: Apache-2.0
// Eight pairs a step, four at the end of a row: half is a multiple of 4.
#include "kernel/declare.h"
#include "kernel/simd/avx2.h"

void sp_rope_f32_f32_f32_1x8_avx2(float *y, const float *x, const float *c, const float *s, size_t half, float scale) {
    const __m256 by = _mm256_set1_ps(scale);
    size_t i = 0;
    for (; i + 8 <= half; i += 8) {
        const __m256 a = _mm256_loadu_ps(x + i);
        const __m256 b = _mm256_loadu_ps(x + i + half);
        const __m256 cos = _mm256_loadu_ps(c + i);
        const __m256 sin = _mm256_loadu_ps(s + i);
        _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_fmsub_ps(a, cos, _mm256_mul_ps(b, sin)), by));
        _mm256_storeu_ps(y + i + half, _mm256_mul_ps(_mm256_fmadd_ps(b, cos, _mm256_mul_ps(a, sin)), by));
    }
    if (i < half) {
        const __m128 a = _mm_loadu_ps(x + i);
        const __m128 b = _mm_loadu_ps(x + i + half);
        const __m128 cos = _mm_loadu_ps(c + i);
        const __m128 sin = _mm_loadu_ps(s + i);
        const __m128 by4 = _mm256_castps256_ps128(by);
        _mm_storeu_ps(y + i, _mm_mul_ps(_mm_fmsub_ps(a, cos, _mm_mul_ps(b, sin)), by4));
        _mm_storeu_ps(y + i + half, _mm_mul_ps(_mm_fmadd_ps(b, cos, _mm_mul_ps(a, sin)), by4));
    }
}
