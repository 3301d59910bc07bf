// SPDX-License-Identifier: Apache-2.0
#include "kernel/gemm/gemm_f_avx512.h"

void sp_gemm_f32_f32_f16_6x64_avx512(const sp_gemm_f_args *args) { sp_gemm_f_avx512(true, args); }
