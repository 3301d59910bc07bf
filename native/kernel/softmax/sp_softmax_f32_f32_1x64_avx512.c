// SPDX-License-Identifier: Apache-2.0
// Four registers hold a row. What is not visible enters the maximum as -infinity and is masked out of the exponentials.
#include <math.h>

#include "kernel/declare.h"
#include "kernel/simd/avx512.h"

// _mm512_max_ps(a, b) is a > b ? a : b, so a NaN in `a` is passed over. The result is in all lanes.
static inline __m512 row_max(__m512 a, __m512 b, __m512 c, __m512 d) {
    __m512 m = _mm512_max_ps(a, _mm512_set1_ps(-INFINITY));
    m = _mm512_max_ps(b, m);
    m = _mm512_max_ps(c, m);
    m = _mm512_max_ps(d, m);
    __m256 h = _mm256_max_ps(_mm512_castps512_ps256(m), _mm512_extractf32x8_ps(m, 1));
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    q = _mm_max_ss(q, _mm_movehdup_ps(q));
    return _mm512_broadcastss_ps(_mm_add_ss(q, _mm_setzero_ps()));
}

// 2^(v - max) in the lanes of `seen`, +0 elsewhere.
static inline __m512 exp2_store(float *s, __mmask16 seen, __m512 v, __m512 max) {
    const __m512 x = _mm512_sub_ps(v, max);
    const __mmask16 keep = _mm512_mask_cmp_ps_mask(seen, x, _mm512_set1_ps(SP_EXP2_MIN), _CMP_NLT_UQ);
    const __m512 p = sp_exp2_kept_avx512(x, keep);
    _mm512_storeu_ps(s, p);
    return p;
}

void sp_softmax_f32_f32_1x64_avx512(const sp_softmax_args *args) {
    const __m512 hidden = _mm512_set1_ps(-INFINITY);
    for (size_t r = 0; r < args->rows; r++) {
        float *s = args->s + r * args->ld;
        const uint64_t seen = ~(uint64_t)0 >> (SP_KEYS - args->visible[r]);
        const __mmask16 m0 = (__mmask16)seen, m1 = (__mmask16)(seen >> 16);
        const __mmask16 m2 = (__mmask16)(seen >> 32), m3 = (__mmask16)(seen >> 48);
        const __m512 a = _mm512_mask_loadu_ps(hidden, m0, s);
        const __m512 b = _mm512_mask_loadu_ps(hidden, m1, s + 16);
        const __m512 c = _mm512_mask_loadu_ps(hidden, m2, s + 32);
        const __m512 d = _mm512_mask_loadu_ps(hidden, m3, s + 48);
        const __m512 max = row_max(a, b, c, d);
        __m512 sum = exp2_store(s, m0, a, max);
        sum = _mm512_add_ps(sum, exp2_store(s + 16, m1, b, max));
        sum = _mm512_add_ps(sum, exp2_store(s + 32, m2, c, max));
        sum = _mm512_add_ps(sum, exp2_store(s + 48, m3, d, max));
        args->max[r] = _mm512_cvtss_f32(max);
        args->sum[r] = sp_lanes_sum_avx512(sum);
    }
}
