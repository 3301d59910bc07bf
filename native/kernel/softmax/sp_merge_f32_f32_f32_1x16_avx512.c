// SPDX-License-Identifier: Apache-2.0
// The factors of sixteen rows are computed at once, then row after row is scaled and added.
#include "kernel/declare.h"
#include "kernel/simd/avx512.h"

// Factors a and b of the rows in mask `rows`; updates their m and l.
static inline void row_factors(const sp_merge_args *args, size_t row, __mmask16 rows, float a[16], float b[16]) {
    const __m512 m = _mm512_maskz_loadu_ps(rows, args->m + row);
    const __m512 mb = _mm512_maskz_loadu_ps(rows, args->mb + row);
    const __m512 max = _mm512_max_ps(m, mb);
    const __m512 fa = sp_exp2_small_avx512(_mm512_sub_ps(m, max));
    const __m512 fb = sp_exp2_small_avx512(_mm512_sub_ps(mb, max));
    const __m512 l = _mm512_mul_ps(_mm512_maskz_loadu_ps(rows, args->l + row), fa);
    _mm512_mask_storeu_ps(args->m + row, rows, max);
    _mm512_mask_storeu_ps(args->l + row, rows, _mm512_fmadd_ps(_mm512_maskz_loadu_ps(rows, args->lb + row), fb, l));
    _mm512_storeu_ps(a, fa);
    _mm512_storeu_ps(b, fb);
}

static inline void row_merge(float *o, const float *ob, size_t d, float a, float b) {
    const __m512 fa = _mm512_set1_ps(a);
    const __m512 fb = _mm512_set1_ps(b);
    size_t i = 0;
    for (; i + 16 <= d; i += 16) {
        const __m512 old = _mm512_mul_ps(_mm512_loadu_ps(o + i), fa);
        _mm512_storeu_ps(o + i, _mm512_fmadd_ps(_mm512_loadu_ps(ob + i), fb, old));
    }
    if (i < d) {
        const __m256 old = _mm256_mul_ps(_mm256_loadu_ps(o + i), _mm512_castps512_ps256(fa));
        _mm256_storeu_ps(o + i, _mm256_fmadd_ps(_mm256_loadu_ps(ob + i), _mm512_castps512_ps256(fb), old));
    }
}

void sp_merge_f32_f32_f32_1x16_avx512(const sp_merge_args *args) {
    for (size_t row = 0; row < args->rows; row += 16) {
        const size_t count = args->rows - row < 16 ? args->rows - row : 16;
        float a[16], b[16];
        row_factors(args, row, sp_first_avx512(count), a, b);
        for (size_t r = 0; r < count; r++)
            row_merge(args->o + (row + r) * args->ldo, args->ob + (row + r) * args->ldb, args->d, a[r], b[r]);
    }
}
