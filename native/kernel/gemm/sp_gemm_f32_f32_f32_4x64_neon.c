// SPDX-License-Identifier: Apache-2.0
#include "kernel/gemm/gemm_f_neon.h"

void sp_gemm_f32_f32_f32_4x64_neon(const sp_gemm_f_args *args) { sp_gemm_f_neon(false, args); }
