// SPDX-License-Identifier: Apache-2.0
// Sixteen conversions at once; a stride of one is a plain store.
#include "kernel/convert/scatter.h"
#include "kernel/declare.h"

enum { NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };

void sp_narrow_f16_f32_1x16_avx512(uint16_t *dst, size_t stride, const float *src, size_t n) {
    const size_t whole = n / 16 * 16;
    for (size_t i = 0; i < whole; i += 16) {
        const __m256i v = _mm512_cvtps_ph(_mm512_loadu_ps(src + i), NEAREST);
        if (stride == 1) {
            _mm256_storeu_si256((__m256i *)(dst + i), v);
        } else {
            sp_scatter8_u16(dst + i * stride, stride, _mm256_castsi256_si128(v));
            sp_scatter8_u16(dst + (i + 8) * stride, stride, _mm256_extracti128_si256(v, 1));
        }
    }
    if (whole < n)
        sp_scatter8_u16(dst + whole * stride, stride, _mm256_cvtps_ph(_mm256_loadu_ps(src + whole), NEAREST));
}
