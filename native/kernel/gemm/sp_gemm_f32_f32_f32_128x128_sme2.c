// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>

#include "kernel/gemm/gemm_f_sme.h"

// gemm_f_sme2.S: all rows and columns for a run of k that fits the turned block, at 512 bits.
typedef struct sp_walk {
    const float *a;
    size_t lda;
    const float *b;
    size_t strip, step;
    float *y;
    size_t ldy, m, n, k;
    float *turned;
    size_t add;  // to y, else from zero
} sp_walk;
void sp_gemm_f_strips_sme2(const sp_walk *walk) SP_STREAMING;  // step is 16: a strip is one run of memory
void sp_gemm_f_rows_sme2(const sp_walk *walk) SP_STREAMING;    // strip is 16: a row is one run of memory

static void walk_512(const sp_gemm_f_args *args) SP_STREAMING {
    _Alignas(SP_PANEL_LINE) float turned[SP_TURNED_K * 16];
    for (size_t first = 0; first < args->k; first += SP_TURNED_K) {
        const sp_walk walk = {.a = args->a + first,
                              .lda = args->lda,
                              .b = (const float *)args->b + first * args->step,
                              .strip = args->strip,
                              .step = args->step,
                              .y = args->y,
                              .ldy = args->ldy,
                              .m = args->m,
                              .n = args->n,
                              .k = sp_least_size(SP_TURNED_K, args->k - first),
                              .turned = turned,
                              .add = args->accumulate || first > 0};
        if (args->step == 16) sp_gemm_f_strips_sme2(&walk);
        else sp_gemm_f_rows_sme2(&walk);
    }
}

SP_BODY(sp_gemm_f32_f32_f32_128x128_sme2, sp_gemm_f_args, SP_STREAMING) {
    if (sp_line_is_vector() && (args->step == 16 || args->strip == 16)) walk_512(args);
    else sp_gemm_f_sme(args, sp_turn, sp_multiply);
}
