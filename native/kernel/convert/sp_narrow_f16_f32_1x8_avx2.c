// SPDX-License-Identifier: Apache-2.0
// Eight conversions at once; a stride of one is a plain store.
#include "kernel/convert/scatter.h"
#include "kernel/declare.h"

void sp_narrow_f16_f32_1x8_avx2(uint16_t *dst, size_t stride, const float *src, size_t n) {
    for (size_t i = 0; i < n; i += 8) {
        const __m128i v = _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        if (stride == 1) _mm_storeu_si128((__m128i *)(dst + i), v);
        else sp_scatter8_u16(dst + i * stride, stride, v);
    }
}
