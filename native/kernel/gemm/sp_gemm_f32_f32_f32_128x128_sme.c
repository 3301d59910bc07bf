// SPDX-License-Identifier: Apache-2.0
#include "kernel/gemm/gemm_f_sme.h"

// gemm_f_sme.S
sp_multiply_fn sp_gemm_f_multiply_sme;
void sp_gemm_f_turn_sme(float *turned, const float *a, size_t lda, size_t k) SP_STREAMING;  // 16 rows

static void turn(float *turned, const float *a, size_t lda, size_t rows, size_t k) SP_STREAMING {
    if (rows == 16) sp_gemm_f_turn_sme(turned, a, lda, k);
    else sp_turn(turned, a, lda, rows, k);
}

SP_BODY(sp_gemm_f32_f32_f32_128x128_sme, sp_gemm_f_args, SP_STREAMING) {
    if (sp_line_is_vector()) sp_gemm_f_sme(args, turn, sp_gemm_f_multiply_sme);
    else sp_gemm_f_sme(args, sp_turn, sp_multiply);
}
