// SPDX-License-Identifier: Apache-2.0
// The definition of the float product: one fma chain over ascending k per output element.
#include <math.h>

#include "kernel/gemm/gemm.h"

void sp_gemm_f32_f32_f32_8x64_ref(const sp_gemm_f_args *args) {
    for (size_t i = 0; i < args->m; i++) {
        for (size_t j = 0; j < args->n; j++) {
            const float *b = args->b + j / 16 * args->strip + j % 16;
            float *y = args->y + i * args->ldy + j;
            float acc = args->accumulate ? *y : 0.0f;
            for (size_t k = 0; k < args->k; k++) acc = fmaf(args->a[i * args->lda + k], b[k * args->step], acc);
            *y = acc;
        }
    }
}
