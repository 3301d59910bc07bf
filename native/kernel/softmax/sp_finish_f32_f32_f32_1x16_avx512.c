// SPDX-License-Identifier: Apache-2.0
#include "kernel/declare.h"
#include "kernel/simd/avx512.h"

void sp_finish_f32_f32_f32_1x16_avx512(float *y, const float *o, float l, size_t d) {
    const __m512 by = _mm512_set1_ps(l);
    for (size_t i = 0; i < d; i += 16) {
        const __mmask16 m = sp_first_avx512(d - i);
        const __m512 v = _mm512_maskz_div_ps(m, _mm512_maskz_loadu_ps(m, o + i), by);
        _mm512_mask_storeu_ps(y + i, m, _mm512_add_ps(v, _mm512_setzero_ps()));
    }
}
