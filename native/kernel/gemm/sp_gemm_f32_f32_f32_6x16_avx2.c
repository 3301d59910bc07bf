// SPDX-License-Identifier: Apache-2.0
#include "kernel/gemm/gemm_f_avx2.h"

void sp_gemm_f32_f32_f32_6x16_avx2(const sp_gemm_f_args *args) { sp_gemm_f_avx2(false, args); }
