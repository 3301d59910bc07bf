// SPDX-License-Identifier: Apache-2.0
#include "kernel/convert/widen_neon.h"
#include "kernel/declare.h"

void sp_widen_f32_f16_1x16_neon(float *dst, const uint16_t *src, size_t n) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const uint16x8_t low = vld1q_u16(src + i), high = vld1q_u16(src + i + 8);
        sp_widen8_neon(dst + i, low);
        sp_widen8_neon(dst + i + 8, high);
    }
    if (i < n) sp_widen8_neon(dst + i, vld1q_u16(src + i));
}
