// SPDX-License-Identifier: Apache-2.0
#include "kernel/gemm/gemm_f_ref.h"

void sp_gemm_f32_f32_f32_8x64_ref(const sp_gemm_f_args *args) { sp_gemm_f_ref(false, args); }
