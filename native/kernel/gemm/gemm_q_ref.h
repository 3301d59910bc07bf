// SPDX-License-Identifier: Apache-2.0
// The definition of the quantised products: one int32 dot product per group, then one fma (two for affine weights).
#pragma once

#include <math.h>

#include "base/dtype.h"
#include "kernel/gemm/gemm.h"

// Weight element i of a group for row r, as the integer that the dot product uses.
static inline int32_t sp_ref_weight(sp_weight_kind kind, const uint8_t *group, size_t r, size_t i) {
    if (kind == SP_WEIGHT_Q8S) return (int8_t)group[i / 4 * 64 + r * 4 + i % 4];
    const int32_t q = group[i / 8 * 64 + r * 4 + i % 4] >> (i / 4 % 2 * 4) & 15;
    return kind == SP_WEIGHT_Q4S ? q - 8 : q;
}

SP_TEMPLATE void sp_gemm_q_ref(sp_weight_kind kind, const sp_gemm_q_args *args) {
    for (size_t t = 0; t < args->m; t++) {
        for (size_t r = 0; r < 16; r++) {
            float acc = 0.0f;
            for (size_t g = 0; g < args->groups; g++) {
                const sp_weight_group w = sp_weight_group_at(kind, args->w, g);
                int32_t dot = 0;
                for (size_t i = 0; i < SP_GROUP; i++) {
                    const size_t quad = g * (SP_GROUP / 4) + i / 4;
                    dot += sp_ref_weight(kind, w.data, r, i) * args->a[(quad * args->width + t) * 4 + i % 4];
                }
                const size_t at = g * args->width + t;
                acc = fmaf((float)dot, sp_f16_to_f32(w.scales[r]) * args->ad[at], acc);
                if (kind == SP_WEIGHT_Q4A) acc = fmaf(sp_f16_to_f32(w.minima[r]), args->as[at], acc);
            }
            args->y[t * args->ldy + r] = acc;
        }
    }
}
