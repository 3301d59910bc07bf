// SPDX-License-Identifier: Apache-2.0
#include "kernel/gemm/gemm_q_sme2.h"

SP_BODY(sp_gemm_f32_q8g32_q4s32_16x16_sme2, sp_gemm_q_args, SP_STREAMING_TABLE) { sp_gemm_q_sme2(SP_WEIGHT_Q4S, args); }
