// SPDX-License-Identifier: Apache-2.0
// The definition of the float products: one fma chain over ascending k per output element.
#pragma once

#include <math.h>

#include "base/dtype.h"
#include "kernel/gemm/gemm.h"

SP_TEMPLATE void sp_gemm_f_ref(const bool half, const sp_gemm_f_args *args) {
    for (size_t i = 0; i < args->m; i++) {
        for (size_t j = 0; j < args->n; j++) {
            const size_t column = j / 16 * args->strip + j % 16;
            float *y = args->y + i * args->ldy + j;
            float acc = args->accumulate ? *y : 0.0f;
            for (size_t k = 0; k < args->k; k++) {
                const size_t at = column + k * args->step;
                const float b = half ? sp_f16_to_f32(((const uint16_t *)args->b)[at]) : ((const float *)args->b)[at];
                acc = fmaf(args->a[i * args->lda + k], b, acc);
            }
            *y = acc;
        }
    }
}
