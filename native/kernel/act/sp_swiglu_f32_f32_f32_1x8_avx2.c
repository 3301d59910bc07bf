// SPDX-License-Identifier: Apache-2.0
#include "kernel/declare.h"
#include "kernel/simd/avx2.h"

void sp_swiglu_f32_f32_f32_1x8_avx2(float *y, const float *g, const float *u, size_t n) {
    for (size_t i = 0; i < n; i += 8) {
        const __m256 gate = sp_silu_avx2(_mm256_loadu_ps(g + i));
        _mm256_storeu_ps(y + i, _mm256_mul_ps(gate, _mm256_loadu_ps(u + i)));
    }
}
