// SPDX-License-Identifier: Apache-2.0
// The passes of kernel/topk/bound.h: sixteen groups side by side, one a lane; candidates found eight at a time.
#include "kernel/declare.h"
#include "kernel/simd/avx2.h"
#include "kernel/topk/bound.h"

static inline size_t group_maxima(float *maxima, const float *x, size_t n, size_t depth) {
    size_t groups = 0;
    for (size_t i = 0; i + 16 * depth <= n; i += 16 * depth) {
        __m256 low = _mm256_loadu_ps(x + i);
        __m256 high = _mm256_loadu_ps(x + i + 8);
        for (size_t j = 1; j < depth; j++) {
            low = _mm256_max_ps(_mm256_loadu_ps(x + i + 16 * j), low);
            high = _mm256_max_ps(_mm256_loadu_ps(x + i + 16 * j + 8), high);
        }
        _mm256_storeu_ps(maxima + groups, low);
        _mm256_storeu_ps(maxima + groups + 8, high);
        groups += 16;
    }
    return groups;
}

static inline size_t collect(uint64_t *keys, const float *x, size_t n, float bound) {
    const __m256 least = _mm256_set1_ps(bound);
    size_t count = 0;
    for (size_t i = 0; i < n; i += 8) {
        unsigned hits = 0;
        if (n - i >= 8) hits = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x + i), least, _CMP_GE_OQ));
        else
            for (size_t j = i; j < n; j++) hits |= (unsigned)(x[j] >= bound) << (j - i);
        count = sp_topk_append(keys, count, x, i, hits);
        if (count > SP_TOPK_ROOM) return count;
    }
    return count;
}

void sp_topk_f32_f32_1x8_avx2(int32_t *index, float *value, const float *x, size_t n, size_t k) {
    sp_topk_by(group_maxima, collect, index, value, x, n, k);
}
