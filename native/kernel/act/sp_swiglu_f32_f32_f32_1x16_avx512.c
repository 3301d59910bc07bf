// SPDX-License-Identifier: Apache-2.0
#include "kernel/declare.h"
#include "kernel/simd/avx512.h"

void sp_swiglu_f32_f32_f32_1x16_avx512(float *y, const float *g, const float *u, size_t n) {
    const size_t whole = n / 16 * 16;
    for (size_t i = 0; i < whole; i += 16) {
        const __m512 gate = sp_silu_avx512(_mm512_loadu_ps(g + i));
        _mm512_storeu_ps(y + i, _mm512_mul_ps(gate, _mm512_loadu_ps(u + i)));
    }
    if (whole < n) {
        const __mmask16 m = sp_first_avx512(n - whole);
        const __m512 gate = sp_silu_avx512(_mm512_maskz_loadu_ps(m, g + whole));
        _mm512_mask_storeu_ps(y + whole, m, _mm512_mul_ps(gate, _mm512_maskz_loadu_ps(m, u + whole)));
    }
}
