// SPDX-License-Identifier: Apache-2.0
// The definition of quantisation with one scale per row: one row of float32 into its slot of a panel of 16 tokens.
#include <math.h>

#include "kernel/declare.h"
#include "kernel/quant/group.h"

void sp_quant_q8r_f32_1x32_ref(const sp_quant_row_args *args) {
    uint32_t amax = 0;
    for (size_t i = 0; i < args->n; i++) {
        const uint32_t size = sp_f32_bits(args->x[i] * args->u[i]) & 0x7fffffffu;
        amax = size > amax ? size : amax;
    }
    const bool ordinary = amax >= SP_QUANT_TINY && amax < SP_QUANT_HUGE;
    const float inverse = 127.0f / sp_f32_from_bits(amax);
    int32_t sum = 0;
    for (size_t i = 0; i < args->n; i++) {
        const int32_t v = ordinary ? (int32_t)rintf(args->x[i] * args->u[i] * inverse) : 0;
        args->q[i / 4 * 64 + i % 4] = (int8_t)v;
        sum += v;
    }
    *args->d = amax < SP_QUANT_TINY ? 0.0f : amax >= SP_QUANT_HUGE ? NAN : sp_f32_from_bits(amax) / 127.0f;
    *args->neg = -sum;
}
