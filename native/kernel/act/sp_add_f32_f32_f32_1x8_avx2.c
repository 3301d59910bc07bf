// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "kernel/declare.h"

void sp_add_f32_f32_f32_1x8_avx2(float *x, const float *y, size_t n) {
    for (size_t i = 0; i < n; i += 8)
        _mm256_storeu_ps(x + i, _mm256_add_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i)));
}
