// SPDX-License-Identifier: Apache-2.0
#include "kernel/declare.h"
#include "kernel/simd/avx512.h"

void sp_add_f32_f32_f32_1x16_avx512(float *x, const float *y, size_t n) {
    const size_t whole = n / 16 * 16;
    for (size_t i = 0; i < whole; i += 16)
        _mm512_storeu_ps(x + i, _mm512_add_ps(_mm512_loadu_ps(x + i), _mm512_loadu_ps(y + i)));
    if (whole < n) {
        const __mmask16 m = sp_first_avx512(n - whole);
        const __m512 sum = _mm512_add_ps(_mm512_maskz_loadu_ps(m, x + whole), _mm512_maskz_loadu_ps(m, y + whole));
        _mm512_mask_storeu_ps(x + whole, m, sum);
    }
}
