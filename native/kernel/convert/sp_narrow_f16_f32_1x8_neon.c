// SPDX-License-Identifier: Apache-2.0
// Eight conversions at once; a stride of one is a plain store, any other one store per lane.
#include "kernel/declare.h"
#include "kernel/simd/neon.h"

SP_TEMPLATE uint16x8_t narrow8(const float *src) {
    const float16x4_t low = vcvt_f16_f32(vld1q_f32(src));
    return vreinterpretq_u16_f16(vcvt_high_f16_f32(low, vld1q_f32(src + 4)));
}

void sp_narrow_f16_f32_1x8_neon(uint16_t *dst, size_t stride, const float *src, size_t n) {
    if (stride == 1) {
        for (size_t i = 0; i < n; i += 8) vst1q_u16(dst + i, narrow8(src + i));
        return;
    }
    for (size_t i = 0; i < n; i += 8, dst += 8 * stride) {
        const uint16x8_t v = narrow8(src + i);
        vst1q_lane_u16(dst, v, 0);
        vst1q_lane_u16(dst + stride, v, 1);
        vst1q_lane_u16(dst + 2 * stride, v, 2);
        vst1q_lane_u16(dst + 3 * stride, v, 3);
        vst1q_lane_u16(dst + 4 * stride, v, 4);
        vst1q_lane_u16(dst + 5 * stride, v, 5);
        vst1q_lane_u16(dst + 6 * stride, v, 6);
        vst1q_lane_u16(dst + 7 * stride, v, 7);
    }
}
