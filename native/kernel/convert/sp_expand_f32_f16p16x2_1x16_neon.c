// SPDX-License-Identifier: Apache-2.0
// A 32-bit word holds one row's two values of k; UZP1 and UZP2 part them, eight rows at a time.
#include "kernel/convert/widen_neon.h"
#include "kernel/declare.h"

void sp_expand_f32_f16p16x2_1x16_neon(float *dst, const uint16_t *src, size_t k) {
    for (size_t i = 0; i < k; i += 2) {
        const uint16x8_t a = vld1q_u16(src + i * 16), b = vld1q_u16(src + i * 16 + 8);
        const uint16x8_t c = vld1q_u16(src + i * 16 + 16), d = vld1q_u16(src + i * 16 + 24);
        sp_widen8_neon(dst + i * 16, vuzp1q_u16(a, b));
        sp_widen8_neon(dst + i * 16 + 8, vuzp1q_u16(c, d));
        sp_widen8_neon(dst + i * 16 + 16, vuzp2q_u16(a, b));
        sp_widen8_neon(dst + i * 16 + 24, vuzp2q_u16(c, d));
    }
}
