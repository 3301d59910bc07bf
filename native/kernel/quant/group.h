// SPDX-License-Identifier: Apache-2.0
// The definition of the quantisation of one group of 32 activations (kernel/families.h, quant). The vector kernels call
// it for groups out of the ordinary range and for rows too short for their tile.
#pragma once

#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "kernel/families.h"

// amax as a bit pattern: an ordinary group lies in [SP_QUANT_TINY, SP_QUANT_HUGE).
#define SP_QUANT_TINY 0x08800000  // 2^-110: below it the group is zero, and 127 / amax stays finite above it
#define SP_QUANT_HUGE 0x7f800000  // infinity; beyond it lies NaN

// Group g of the row. Scale, negated sum and scaled sum go to `g * width`, quads to every 4 * width bytes.
static inline void sp_quant_group(const sp_quant_args *args, size_t g) {
    const float *x = args->x + g * SP_GROUP;
    int8_t *q = args->q + g * SP_GROUP * args->width;
    uint32_t amax = 0;
    for (size_t i = 0; i < SP_GROUP; i++) {
        const uint32_t size = sp_f32_bits(x[i]) & 0x7fffffffu;
        amax = size > amax ? size : amax;
    }
    const bool ordinary = amax >= SP_QUANT_TINY && amax < SP_QUANT_HUGE;
    const float inverse = 127.0f / sp_f32_from_bits(amax);
    int32_t sum = 0;
    for (size_t i = 0; i < SP_GROUP; i++) {
        const int32_t v = ordinary ? (int32_t)rintf(x[i] * inverse) : 0;
        q[i / 4 * 4 * args->width + i % 4] = (int8_t)v;
        sum += v;
    }
    float scale = sp_f32_from_bits(amax) / 127.0f;
    if (amax < SP_QUANT_TINY) scale = 0.0f;
    if (amax >= SP_QUANT_HUGE) scale = NAN;
    args->d[g * args->width] = scale;
    args->neg[g * args->width] = -sum;
    args->sum[g * args->width] = scale * (float)sum;
}
