// SPDX-License-Identifier: Apache-2.0
// The definition of the product with one scale per row: one int32 dot product over the whole k, then one scale.
#include "kernel/declare.h"

static int32_t dot(const int8_t *a, const int8_t *w, size_t k) {
    int32_t sum = 0;
    for (size_t quad = 0; quad < k / 4; quad++)
        for (size_t i = 0; i < 4; i++) sum += a[quad * 64 + i] * w[quad * 64 + i];
    return sum;
}

void sp_gemm_f32_q8r_q8r_16x16_ref(const sp_gemm_r_args *args) {
    const size_t panel = 16 * args->k;
    for (size_t t = 0; t < args->m; t++) {
        const int8_t *a = args->a + t / 16 * panel + t % 16 * 4;
        for (size_t r = 0; r < args->n; r++) {
            const int8_t *w = args->w + r / 16 * panel + r % 16 * 4;
            args->y[t * args->ldy + r] = (float)dot(a, w, args->k) * (args->wd[r] * args->ad[t]);
        }
    }
}
