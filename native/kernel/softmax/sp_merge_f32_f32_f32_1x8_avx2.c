// SPDX-License-Identifier: Apache-2.0
// The factors of eight rows are computed at once, then row after row is scaled and added.
#include "kernel/declare.h"
#include "kernel/simd/avx2.h"

// Factors a and b of up to eight rows; updates their m and l. Lanes beyond `count` hold zeros and are not stored.
static inline void row_factors(const sp_merge_args *args, size_t row, size_t count, float a[8], float b[8]) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i rows = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), lane);
    const __m256 m = _mm256_maskload_ps(args->m + row, rows);
    const __m256 mb = _mm256_maskload_ps(args->mb + row, rows);
    const __m256 max = _mm256_max_ps(m, mb);
    const __m256 fa = sp_exp2_small_avx2(_mm256_sub_ps(m, max));
    const __m256 fb = sp_exp2_small_avx2(_mm256_sub_ps(mb, max));
    const __m256 l = _mm256_mul_ps(_mm256_maskload_ps(args->l + row, rows), fa);
    _mm256_maskstore_ps(args->m + row, rows, max);
    _mm256_maskstore_ps(args->l + row, rows, _mm256_fmadd_ps(_mm256_maskload_ps(args->lb + row, rows), fb, l));
    _mm256_storeu_ps(a, fa);
    _mm256_storeu_ps(b, fb);
}

void sp_merge_f32_f32_f32_1x8_avx2(const sp_merge_args *args) {
    for (size_t row = 0; row < args->rows; row += 8) {
        const size_t count = args->rows - row < 8 ? args->rows - row : 8;
        float a[8], b[8];
        row_factors(args, row, count, a, b);
        for (size_t r = 0; r < count; r++) {
            float *o = args->o + (row + r) * args->ldo;
            const float *ob = args->ob + (row + r) * args->ldb;
            const __m256 fa = _mm256_set1_ps(a[r]);
            const __m256 fb = _mm256_set1_ps(b[r]);
            for (size_t i = 0; i < args->d; i += 8) {
                const __m256 old = _mm256_mul_ps(_mm256_loadu_ps(o + i), fa);
                _mm256_storeu_ps(o + i, _mm256_fmadd_ps(_mm256_loadu_ps(ob + i), fb, old));
            }
        }
    }
}
