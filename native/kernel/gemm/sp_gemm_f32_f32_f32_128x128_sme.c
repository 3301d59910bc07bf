// SPDX-License-Identifier: Apache-2.0
#include "kernel/gemm/gemm_f_sme.h"

SP_BODY(sp_gemm_f32_f32_f32_128x128_sme, sp_gemm_f_args, SP_STREAMING) { sp_gemm_f_sme(args); }
