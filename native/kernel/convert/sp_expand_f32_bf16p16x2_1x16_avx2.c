// SPDX-License-Identifier: Apache-2.0
// bfloat16 is the upper half of a float32: a shift for the first value of a pair, a mask for the second.
#include <immintrin.h>

#include "kernel/declare.h"

void sp_expand_f32_bf16p16x2_1x16_avx2(float *dst, const uint16_t *src, size_t k) {
    const __m256i mask = _mm256_set1_epi32((int)0xffff0000u);
    for (size_t i = 0; i < k; i += 2) {
        for (size_t r = 0; r < 16; r += 8) {
            const __m256i words = _mm256_loadu_si256((const __m256i *)(src + i * 16 + r * 2));
            _mm256_storeu_si256((__m256i *)(dst + i * 16 + r), _mm256_slli_epi32(words, 16));
            _mm256_storeu_si256((__m256i *)(dst + i * 16 + 16 + r), _mm256_and_si256(words, mask));
        }
    }
}
