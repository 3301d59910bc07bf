// SPDX-License-Identifier: Apache-2.0
// The passes of kernel/topk/bound.h: sixteen groups side by side, one a lane; candidates found sixteen at a time.
#include <math.h>

#include "kernel/declare.h"
#include "kernel/simd/avx512.h"
#include "kernel/topk/bound.h"

static inline size_t group_maxima(float *maxima, const float *x, size_t n, size_t depth) {
    size_t groups = 0;
    for (size_t i = 0; i + 16 * depth <= n; i += 16 * depth) {
        __m512 m = _mm512_loadu_ps(x + i);
        for (size_t j = 1; j < depth; j++) m = _mm512_max_ps(_mm512_loadu_ps(x + i + 16 * j), m);
        _mm512_storeu_ps(maxima + groups, m);
        groups += 16;
    }
    return groups;
}

static inline size_t collect(uint64_t *keys, const float *x, size_t n, float bound) {
    const __m512 least = _mm512_set1_ps(bound);
    size_t count = 0;
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 m = sp_first_avx512(n - i);
        unsigned hits = _mm512_mask_cmp_ps_mask(m, _mm512_maskz_loadu_ps(m, x + i), least, _CMP_GE_OQ);
        count = sp_topk_append(keys, count, x, i, hits);
        if (count > SP_TOPK_ROOM) return count;
    }
    return count;
}

void sp_topk_f32_f32_1x16_avx512(int32_t *index, float *value, const float *x, size_t n, size_t k) {
    sp_topk_by(group_maxima, collect, index, value, x, n, k);
}
