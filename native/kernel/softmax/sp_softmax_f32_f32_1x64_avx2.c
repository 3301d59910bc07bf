// SPDX-License-Identifier: Apache-2.0
// Eight registers hold a row. What is not visible enters as -infinity, which exp2 turns into +0.
#include <math.h>

#include "kernel/declare.h"
#include "kernel/simd/avx2.h"

// _mm256_max_ps(a, b) is a > b ? a : b, so a NaN in `a` is passed over.
static inline __m256 row_max(const __m256 v[8]) {
    __m256 m = _mm256_set1_ps(-INFINITY);
    for (int i = 0; i < 8; i++) m = _mm256_max_ps(v[i], m);
    m = _mm256_max_ps(m, _mm256_permute2f128_ps(m, m, 1));
    m = _mm256_max_ps(m, _mm256_permute_ps(m, 0x4e));
    m = _mm256_max_ps(m, _mm256_permute_ps(m, 0xb1));
    return _mm256_add_ps(m, _mm256_setzero_ps());
}

static inline void softmax_row(float *s, const __m256 v[8], float *max, float *sum) {
    const __m256 m = row_max(v);
    __m256 p[8];
    for (int i = 0; i < 8; i++) {
        p[i] = sp_exp2_small_avx2(_mm256_sub_ps(v[i], m));
        _mm256_storeu_ps(s + 8 * i, p[i]);
    }
    const __m256 low = _mm256_add_ps(_mm256_add_ps(_mm256_add_ps(p[0], p[2]), p[4]), p[6]);
    const __m256 high = _mm256_add_ps(_mm256_add_ps(_mm256_add_ps(p[1], p[3]), p[5]), p[7]);
    *max = _mm256_cvtss_f32(m);
    *sum = sp_lanes_sum_avx2(low, high);
}

void sp_softmax_f32_f32_1x64_avx2(const sp_softmax_args *args) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256 hidden = _mm256_set1_ps(-INFINITY);
    for (size_t r = 0; r < args->rows; r++) {
        float *s = args->s + r * args->ld;
        __m256 v[8];
        for (int i = 0; i < 8; i++) v[i] = _mm256_loadu_ps(s + 8 * i);
        if (args->visible[r] < SP_KEYS) {
            for (int i = 0; i < 8; i++) {
                const __m256i seen = _mm256_cmpgt_epi32(_mm256_set1_epi32(args->visible[r] - 8 * i), lane);
                v[i] = _mm256_blendv_ps(hidden, v[i], _mm256_castsi256_ps(seen));
            }
        }
        softmax_row(s, v, &args->max[r], &args->sum[r]);
    }
}
