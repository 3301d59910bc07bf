// SPDX-License-Identifier: Apache-2.0
// bfloat16 is the upper half of a float32: a shift for the first value of a pair, a mask for the second.
#include <immintrin.h>

#include "kernel/declare.h"

void sp_expand_f32_bf16p16x2_1x16_avx512(float *dst, const uint16_t *src, size_t k) {
    const __m512i mask = _mm512_set1_epi32((int)0xffff0000u);
    for (size_t i = 0; i < k; i += 2) {
        const __m512i words = _mm512_loadu_si512(src + i * 16);
        _mm512_storeu_si512(dst + i * 16, _mm512_slli_epi32(words, 16));
        _mm512_storeu_si512(dst + i * 16 + 16, _mm512_and_si512(words, mask));
    }
}
