// SPDX-License-Identifier: Apache-2.0
#include "kernel/gemm/gemm_r_sme.h"

// gemm_r_sme.S
sp_product_fn sp_gemm_r_2x2_sme, sp_gemm_r_1x4_sme;

SP_BODY(sp_gemm_f32_q8r_q8r_32x32_sme, sp_gemm_r_args, SP_STREAMING) {
    if (sp_line_is_vector()) sp_gemm_r_sme(args, sp_gemm_r_2x2_sme, sp_gemm_r_1x4_sme, sp_store_pair);
    else sp_gemm_r_sme(args, sp_product_2x2, sp_product_1x4, sp_store_pair);
}
