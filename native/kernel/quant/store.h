// SPDX-License-Identifier: Apache-2.0
// What the x86 quantisers share: placing the results of four groups in the panel.
#pragma once

#include <immintrin.h>
#include <string.h>

#include "kernel/quant/group.h"

static inline void sp_quant_store_quad(int8_t *q, int bits) { memcpy(q, &bits, 4); }

// Scales, negated sums and scaled sums of groups g..g+3.
static inline void sp_quant_store_facts(const sp_quant_args *args, size_t g, __m128 scale, __m128i sum) {
    float d[4], s[4];
    int32_t neg[4];
    _mm_storeu_ps(d, scale);
    _mm_storeu_ps(s, _mm_mul_ps(scale, _mm_cvtepi32_ps(sum)));
    _mm_storeu_si128((__m128i *)neg, _mm_sub_epi32(_mm_setzero_si128(), sum));
    for (size_t i = 0; i < 4; i++) {
        args->d[(g + i) * args->width] = d[i];
        args->neg[(g + i) * args->width] = neg[i];
        args->sum[(g + i) * args->width] = s[i];
    }
}
