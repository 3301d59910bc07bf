// SPDX-License-Identifier: Apache-2.0
// A 32-bit word holds one row's two values of k; vpmovdw keeps the lower half of each word, before and after a shift.
#include <immintrin.h>

#include "kernel/declare.h"

void sp_expand_f32_f16p16x2_1x16_avx512(float *dst, const uint16_t *src, size_t k) {
    for (size_t i = 0; i < k; i += 2) {
        const __m512i words = _mm512_loadu_si512(src + i * 16);
        const __m256i first = _mm512_cvtepi32_epi16(words);
        const __m256i second = _mm512_cvtepi32_epi16(_mm512_srli_epi32(words, 16));
        _mm512_storeu_ps(dst + i * 16, _mm512_cvtph_ps(first));
        _mm512_storeu_ps(dst + i * 16 + 16, _mm512_cvtph_ps(second));
    }
}
