// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "kernel/declare.h"

void sp_widen_f32_f16_1x16_avx512(float *dst, const uint16_t *src, size_t n) {
    const size_t whole = n / 16 * 16;
    for (size_t i = 0; i < whole; i += 16)
        _mm512_storeu_ps(dst + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(src + i))));
    if (whole < n) _mm256_storeu_ps(dst + whole, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(src + whole))));
}
