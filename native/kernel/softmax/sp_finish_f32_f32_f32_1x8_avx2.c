// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "kernel/declare.h"

void sp_finish_f32_f32_f32_1x8_avx2(float *y, const float *o, float l, size_t d) {
    const __m256 by = _mm256_set1_ps(l);
    for (size_t i = 0; i < d; i += 8) {
        const __m256 v = _mm256_div_ps(_mm256_loadu_ps(o + i), by);
        _mm256_storeu_ps(y + i, _mm256_add_ps(v, _mm256_setzero_ps()));
    }
}
