// SPDX-License-Identifier: Apache-2.0
#include "kernel/convert/expand_r_avx512.h"

void sp_expand_q8r_q4s32_1x16_avx512(const sp_expand_r_args *args) { sp_expand_r_avx512(SP_WEIGHT_Q4S, args); }
