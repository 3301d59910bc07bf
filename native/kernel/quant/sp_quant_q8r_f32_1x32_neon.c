// SPDX-License-Identifier: Apache-2.0
// Two passes over the row: its largest product, then the bytes. The products are made twice, since a row of them would
// need memory; 32 values a step.
#include <math.h>

#include "kernel/declare.h"
#include "kernel/quant/bytes_neon.h"
#include "kernel/quant/group.h"

enum { QUAD = 64 };  // bytes from a token's quad to its next

SP_TEMPLATE float32x4_t smoothed(const sp_quant_row_args *args, size_t i) {
    return vmulq_f32(vld1q_f32(args->x + i), vld1q_f32(args->u + i));
}

static inline uint32_t row_max(const sp_quant_row_args *args) {
    const uint32x4_t zero = vdupq_n_u32(0);
    uint32x4_t m[8] = {zero, zero, zero, zero, zero, zero, zero, zero};
    for (size_t i = 0; i < args->n; i += 32) {
        SP_UNROLL
        for (size_t j = 0; j < 8; j++) m[j] = vmaxq_u32(m[j], sp_size_neon(smoothed(args, i + 4 * j)));
    }
    SP_UNROLL
    for (size_t j = 0; j < 4; j++) m[j] = vmaxq_u32(m[j], m[j + 4]);
    return vmaxvq_u32(vmaxq_u32(vmaxq_u32(m[0], m[1]), vmaxq_u32(m[2], m[3])));
}

SP_TEMPLATE int8x16_t half_bytes(const sp_quant_row_args *args, size_t i, float inverse) {
    uint16x8_t v[4];
    SP_UNROLL
    for (size_t j = 0; j < 4; j++) v[j] = sp_rint_neon(vmulq_n_f32(smoothed(args, i + 4 * j), inverse));
    return sp_low_bytes_neon(v);
}

// Stores the row's bytes and returns their sum.
static inline int32_t row_bytes(const sp_quant_row_args *args, float inverse) {
    int32x4_t sum = vdupq_n_s32(0);
    int8_t *q = args->q;
    for (size_t i = 0; i < args->n; i += 32) {
        const sp_bytes32 v = {half_bytes(args, i, inverse), half_bytes(args, i + 16, inverse)};
        q = sp_store_quads_neon(q, QUAD, v.low);
        q = sp_store_quads_neon(q, QUAD, v.high);
        sum = vpadalq_s16(sum, sp_sum_bytes_neon(v));
    }
    return vaddvq_s32(sum);
}

// A row out of the ordinary range has no values.
static inline void row_zeros(const sp_quant_row_args *args) {
    int8_t *q = args->q;
    for (size_t i = 0; i < args->n; i += 16) q = sp_store_quads_neon(q, QUAD, vdupq_n_s8(0));
}

void sp_quant_q8r_f32_1x32_neon(const sp_quant_row_args *args) {
    const uint32_t amax = row_max(args);
    if (amax < SP_QUANT_TINY || amax >= SP_QUANT_HUGE) {
        row_zeros(args);
        *args->d = amax < SP_QUANT_TINY ? 0.0f : NAN;
        *args->neg = 0;
        return;
    }
    *args->d = sp_f32_from_bits(amax) / 127.0f;
    *args->neg = -row_bytes(args, 127.0f / sp_f32_from_bits(amax));
}
