// SPDX-License-Identifier: Apache-2.0
// Eight float16 to float32, in the processor's own conversion (ARMv8.0 has it; arithmetic on halves came later).
#pragma once

#include "kernel/simd/neon.h"

SP_TEMPLATE void sp_widen8_neon(float *dst, uint16x8_t halves) {
    const float16x8_t v = vreinterpretq_f16_u16(halves);
    vst1q_f32(dst, vcvt_f32_f16(vget_low_f16(v)));
    vst1q_f32(dst + 4, vcvt_high_f32_f16(v));
}
