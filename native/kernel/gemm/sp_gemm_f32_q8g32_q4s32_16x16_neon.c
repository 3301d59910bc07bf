// SPDX-License-Identifier: Apache-2.0
#include "kernel/gemm/gemm_q_neon.h"

void sp_gemm_f32_q8g32_q4s32_16x16_neon(const sp_gemm_q_args *args) { sp_gemm_q_neon(SP_WEIGHT_Q4S, args); }
