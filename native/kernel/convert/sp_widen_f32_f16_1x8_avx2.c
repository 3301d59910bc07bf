// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "kernel/declare.h"

void sp_widen_f32_f16_1x8_avx2(float *dst, const uint16_t *src, size_t n) {
    for (size_t i = 0; i < n; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(src + i))));
}
