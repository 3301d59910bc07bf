// SPDX-License-Identifier: Apache-2.0
#include "kernel/gemm/gemm_q_sme.h"

SP_BODY(sp_gemm_f32_q8g32_q4s32_16x16_sme, sp_gemm_q_args, SP_STREAMING) {
    sp_gemm_q_sme(SP_WEIGHT_Q4S, args, sp_group_sme, sp_sum_sme);
}
