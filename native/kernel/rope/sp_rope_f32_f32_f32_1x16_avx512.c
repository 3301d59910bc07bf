// SPDX-License-Identifier: Apache-2.0
// Sixteen pairs a step, the end of a row under a mask.
#include "kernel/declare.h"
#include "kernel/simd/avx512.h"

void sp_rope_f32_f32_f32_1x16_avx512(float *y, const float *x, const float *c, const float *s, size_t half,
                                     float scale) {
    const __m512 by = _mm512_set1_ps(scale);
    for (size_t i = 0; i < half; i += 16) {
        const __mmask16 m = sp_first_avx512(half - i);
        const __m512 a = _mm512_maskz_loadu_ps(m, x + i);
        const __m512 b = _mm512_maskz_loadu_ps(m, x + i + half);
        const __m512 cos = _mm512_maskz_loadu_ps(m, c + i);
        const __m512 sin = _mm512_maskz_loadu_ps(m, s + i);
        const __m512 first = _mm512_fmsub_ps(a, cos, _mm512_mul_ps(b, sin));
        const __m512 second = _mm512_fmadd_ps(b, cos, _mm512_mul_ps(a, sin));
        _mm512_mask_storeu_ps(y + i, m, _mm512_mul_ps(first, by));
        _mm512_mask_storeu_ps(y + i + half, m, _mm512_mul_ps(second, by));
    }
}
