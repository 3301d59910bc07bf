// SPDX-License-Identifier: Apache-2.0
// A 32-bit word holds one row's two values of k; they are parted by mask and shift, packed to halfwords and converted.
#include <immintrin.h>

#include "kernel/declare.h"

// Low halfwords of eight words -> eight floats.
static inline __m256 low_f16(__m256i words) {
    const __m256i even = _mm256_packus_epi32(words, words);  // per 128-bit lane; lanes 0 and 2 hold all eight
    const __m256i joined = _mm256_permute4x64_epi64(even, 0x08);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(joined));
}

void sp_expand_f32_f16p16x2_1x16_avx2(float *dst, const uint16_t *src, size_t k) {
    const __m256i mask = _mm256_set1_epi32(0xffff);
    for (size_t i = 0; i < k; i += 2) {
        for (size_t r = 0; r < 16; r += 8) {
            const __m256i words = _mm256_loadu_si256((const __m256i *)(src + i * 16 + r * 2));
            _mm256_storeu_ps(dst + i * 16 + r, low_f16(_mm256_and_si256(words, mask)));
            _mm256_storeu_ps(dst + i * 16 + 16 + r, low_f16(_mm256_srli_epi32(words, 16)));
        }
    }
}
