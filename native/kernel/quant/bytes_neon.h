// SPDX-License-Identifier: Apache-2.0
// What the NEON quantisers share: the size of values as bit patterns, rounding to bytes, quads into the panel.
#pragma once

#include <stdint.h>

#include "kernel/simd/neon.h"

// A group of 32 bytes in ascending order.
typedef struct sp_bytes32 {
    int8x16_t low, high;
} sp_bytes32;

// |x| as bit patterns: their order as integers is the order of sizes, NaN above infinity.
SP_TEMPLATE uint32x4_t sp_size_neon(float32x4_t x) { return vreinterpretq_u32_f32(vabsq_f32(x)); }

// rint(z) in the low byte of each element, for |z| < 2^22: adding 1.5 * 2^23 rounds to an integer, ties to even, and
// leaves it in the low bits. An addition, because most cores add twice as often as they convert.
SP_TEMPLATE uint16x8_t sp_rint_neon(float32x4_t z) {
    return vreinterpretq_u16_f32(vaddq_f32(z, vdupq_n_f32(0x1.8p23f)));
}

// The low bytes of sixteen rounded values.
SP_TEMPLATE int8x16_t sp_low_bytes_neon(const uint16x8_t v[4]) {
    const uint8x16_t low = vreinterpretq_u8_u16(vuzp1q_u16(v[0], v[1]));
    const uint8x16_t high = vreinterpretq_u8_u16(vuzp1q_u16(v[2], v[3]));
    return vreinterpretq_s8_u8(vuzp1q_u8(low, high));
}

// Four quads, `apart` bytes from each other.
SP_TEMPLATE int8_t *sp_store_quads_neon(int8_t *q, size_t apart, int8x16_t v) {
    const int32x4_t quads = vreinterpretq_s32_s8(v);
    vst1q_lane_s32((int32_t *)(void *)q, quads, 0);
    vst1q_lane_s32((int32_t *)(void *)(q += apart), quads, 1);
    vst1q_lane_s32((int32_t *)(void *)(q += apart), quads, 2);
    vst1q_lane_s32((int32_t *)(void *)(q += apart), quads, 3);
    return q + apart;
}

// Pairs and more of 32 bytes added up: eight partial sums.
SP_TEMPLATE int16x8_t sp_sum_bytes_neon(sp_bytes32 v) { return vpadalq_s8(vpaddlq_s8(v.low), v.high); }
