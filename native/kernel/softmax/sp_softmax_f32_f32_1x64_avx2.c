// SPDX-License-Identifier: Apache-2.0
// Eight registers hold a row. What is not visible enters the maximum, and again the exponential, as -infinity.
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

// Hides the elements from `visible` on: -infinity, whose exponential is +0.
static inline void hide(__m256 v[8], int visible) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (int i = 0; i < 8; i++) {
        const __m256i seen = _mm256_cmpgt_epi32(_mm256_set1_epi32(visible - 8 * i), lane);
        v[i] = _mm256_blendv_ps(_mm256_set1_ps(-INFINITY), v[i], _mm256_castsi256_ps(seen));
    }
}

static inline void softmax_row(float *s, int visible, float *max, float *sum) {
    __m256 v[8];
    for (int i = 0; i < 8; i++) v[i] = _mm256_loadu_ps(s + 8 * i);
    if (visible < SP_KEYS) hide(v, visible);
    const __m256 m = row_max(v);
    for (int i = 0; i < 8; i++) v[i] = _mm256_sub_ps(v[i], m);
    if (visible < SP_KEYS) hide(v, visible);  // -infinity less a maximum of -infinity would be NaN
    for (int i = 0; i < 8; i++) {
        v[i] = sp_exp2_small_avx2(v[i]);
        _mm256_storeu_ps(s + 8 * i, v[i]);
    }
    const __m256 low = _mm256_add_ps(_mm256_add_ps(_mm256_add_ps(v[0], v[2]), v[4]), v[6]);
    const __m256 high = _mm256_add_ps(_mm256_add_ps(_mm256_add_ps(v[1], v[3]), v[5]), v[7]);
    *max = _mm256_cvtss_f32(m);
    *sum = sp_lanes_sum_avx2(low, high);
}

void sp_softmax_f32_f32_1x64_avx2(const sp_softmax_args *args) {
    for (size_t r = 0; r < args->rows; r++)
        softmax_row(args->s + r * args->ld, args->visible[r], &args->max[r], &args->sum[r]);
}
