// SPDX-License-Identifier: Apache-2.0
// The definition of the expansion of a quantised weight panel to int8 with one scale per row.
#pragma once

#include <math.h>

#include "base/dtype.h"
#include "kernel/gemm/gemm.h"

SP_TEMPLATE int8_t sp_expand_r_one(sp_weight_kind kind, const sp_weight_group *w, size_t r, size_t i, float inv,
                                   float s) {
    const float c = sp_f16_to_f32(w->scales[r]) * inv;
    const int32_t q = kind == SP_WEIGHT_Q8S ? (int8_t)w->data[i / 4 * 64 + r * 4 + i % 4]
                                            : w->data[i / 8 * 64 + r * 4 + i % 4] >> (i / 4 % 2 * 4) & 15;
    if (kind == SP_WEIGHT_Q4A) return (int8_t)rintf(fmaf(c, (float)q, sp_f16_to_f32(w->minima[r]) * inv) * s);
    return (int8_t)rintf(c * (float)(kind == SP_WEIGHT_Q4S ? q - 8 : q) * s);
}

SP_TEMPLATE void sp_expand_r_ref(sp_weight_kind kind, const sp_expand_r_args *args) {
    for (size_t j = 0; j < args->k; j++) {
        const sp_weight_group w = sp_weight_group_at(kind, args->w, j / SP_GROUP);
        for (size_t r = 0; r < 16; r++)
            args->dst[j / 4 * 64 + r * 4 + j % 4] =
                sp_expand_r_one(kind, &w, r, j % SP_GROUP, args->inv[r], args->s[j]);
    }
}
