// SPDX-License-Identifier: Apache-2.0
// The 16 lanes are one register. The chain of additions is serial, so one row waits on latency; the next row's chain
// overlaps with this row's second pass.
#include <math.h>

#include "kernel/declare.h"
#include "kernel/simd/avx512.h"

void sp_rmsnorm_f32_f32_f32_1x16_avx512(float *y, const float *x, const float *w, size_t n, float eps) {
    const size_t whole = n / 16 * 16;
    const __mmask16 rest = sp_first_avx512(n - whole);
    __m512 lanes = _mm512_setzero_ps();
    for (size_t i = 0; i < whole; i += 16) {
        const __m512 v = _mm512_loadu_ps(x + i);
        lanes = _mm512_fmadd_ps(v, v, lanes);
    }
    if (rest) {
        const __m512 v = _mm512_maskz_loadu_ps(rest, x + whole);
        lanes = _mm512_fmadd_ps(v, v, lanes);
    }
    const __m512 r = _mm512_set1_ps(1.0f / sqrtf(sp_lanes_sum_avx512(lanes) / (float)n + eps));
    for (size_t i = 0; i < whole; i += 16) {
        const __m512 v = _mm512_mul_ps(_mm512_loadu_ps(x + i), r);
        _mm512_storeu_ps(y + i, _mm512_mul_ps(v, _mm512_loadu_ps(w + i)));
    }
    if (rest) {
        const __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(rest, x + whole), r);
        _mm512_mask_storeu_ps(y + whole, rest, _mm512_mul_ps(v, _mm512_maskz_loadu_ps(rest, w + whole)));
    }
}
