// SPDX-License-Identifier: Apache-2.0
// Quantised weight panels to int8 with one scale per row: a template, instantiated per format.
//
// A register of a line holds 4 rows x 4 k: a row's scale is one lane of a register of scales, and the smoothing of its
// four columns is one register. What costs is the way from bytes to floats and back:
//  * a nibble becomes a float16, and FCVTL makes that a float32. An unsigned one is the subnormal nibble * 2^-24 as it
//    stands, zero-extended; the power of two goes into the row's factor. A symmetric one, -8..7, has zeros in the low
//    byte of its float16: a look-up gives the high bytes of sixteen. Six or seven instructions for sixteen values.
//  * a byte goes to the top of its 32-bit element by a look-up in which the other indices are out of range (that gives
//    0), and SCVTF takes the 24 bits below as a fraction: eight instructions for sixteen values.
//  * back: quant/bytes_neon.h, seven for sixteen.
// Two products (affine: a copy, too, since FMLA overwrites the addend) for each four values are the definition itself.
#pragma once

#include "kernel/gemm/gemm.h"
#include "kernel/quant/bytes_neon.h"

// High bytes of float16 -8..7.
static const uint8_t sp_nibbles_symmetric[16] = {0xc8, 0xc7, 0xc6, 0xc5, 0xc4, 0xc2, 0xc0, 0xbc,
                                                 0x00, 0x3c, 0x40, 0x42, 0x44, 0x45, 0x46, 0x47};

// Which byte goes to the top of which element, for the first of four rows; for a row further 4 more. 128 is no byte.
static const uint8_t sp_bytes_to_top[16] = {128, 128, 128, 0, 128, 128, 128, 1, 128, 128, 128, 2, 128, 128, 128, 3};

// A group's scales (or minima) times 127 / amax, row r at [r / 4][r % 4].
SP_TEMPLATE sp_f32x16 sp_expand_r_scales(const uint16_t *halves, sp_f32x16 inv) {
    const float16x8_t low = vreinterpretq_f16_u16(vld1q_u16(halves));
    const float16x8_t high = vreinterpretq_f16_u16(vld1q_u16(halves + 8));
    return (sp_f32x16){
        {vmulq_f32(vcvt_f32_f16(vget_low_f16(low)), inv.q[0]), vmulq_f32(vcvt_high_f32_f16(low), inv.q[1]),
         vmulq_f32(vcvt_f32_f16(vget_low_f16(high)), inv.q[2]), vmulq_f32(vcvt_high_f32_f16(high), inv.q[3])}};
}

// Eight float16 to float32. As an instruction, since clang makes of the intrinsic on reinterpreted bytes an EXT and
// FCVTL.
SP_TEMPLATE void sp_expand_r_widen(float32x4_t v[2], uint8x16_t halves) {
    v[0] = vcvt_f32_f16(vget_low_f16(vreinterpretq_f16_u8(halves)));
    __asm__("fcvtl2 %0.4s, %1.8h" : "=w"(v[1]) : "w"(halves));
}

// The float values of 4 rows x 4 k: sixteen nibbles, one a byte, or sixteen bytes.
SP_TEMPLATE void sp_expand_r_values(sp_weight_kind kind, float32x4_t v[4], uint8x16_t table, uint8x16_t raw) {
    if (kind == SP_WEIGHT_Q8S) {
        SP_UNROLL
        for (uint8_t r = 0; r < 4; r++) {
            const uint8x16_t top = vqtbl1q_u8(raw, vaddq_u8(table, vdupq_n_u8((uint8_t)(4 * r))));
            v[r] = vcvtq_n_f32_s32(vreinterpretq_s32_u8(top), 24);
        }
        return;
    }
    const uint8x16_t none = vdupq_n_u8(0), high = kind == SP_WEIGHT_Q4S ? vqtbl1q_u8(table, raw) : none;
    const uint8x16_t low = kind == SP_WEIGHT_Q4S ? none : raw;
    sp_expand_r_widen(v, vzip1q_u8(low, high));
    sp_expand_r_widen(v + 2, vzip2q_u8(low, high));
}

SP_TEMPLATE float32x4_t sp_expand_r_scaled(sp_weight_kind kind, float32x4_t q, float32x4_t c, float32x4_t m) {
    return kind == SP_WEIGHT_Q4A ? vfmaq_f32(m, q, c) : vmulq_f32(q, c);
}

// 4 rows x 4 k: c and m are the rows' factors, s smooths the columns.
SP_TEMPLATE void sp_expand_r_block(sp_weight_kind kind, int8_t *dst, uint8x16_t raw, float32x4_t c, float32x4_t m,
                                   float32x4_t s, uint8x16_t table) {
    float32x4_t v[4];
    sp_expand_r_values(kind, v, table, raw);
    v[0] = sp_expand_r_scaled(kind, v[0], vdupq_laneq_f32(c, 0), vdupq_laneq_f32(m, 0));
    v[1] = sp_expand_r_scaled(kind, v[1], vdupq_laneq_f32(c, 1), vdupq_laneq_f32(m, 1));
    v[2] = sp_expand_r_scaled(kind, v[2], vdupq_laneq_f32(c, 2), vdupq_laneq_f32(m, 2));
    v[3] = sp_expand_r_scaled(kind, v[3], vdupq_laneq_f32(c, 3), vdupq_laneq_f32(m, 3));
    uint16x8_t rounded[4];
    SP_UNROLL
    for (int r = 0; r < 4; r++) rounded[r] = sp_rint_neon(vmulq_f32(v[r], s));
    vst1q_s8(dst, sp_low_bytes_neon(rounded));
}

// One line of the panel: 16 rows x 4 k, of 4-bit formats x 8 k.
SP_TEMPLATE void sp_expand_r_line(sp_weight_kind kind, int8_t *dst, const uint8_t *line, sp_f32x16 c, sp_f32x16 m,
                                  const float *s, uint8x16_t table) {
    const float32x4_t first = vld1q_f32(s), second = kind == SP_WEIGHT_Q8S ? first : vld1q_f32(s + 4);
    SP_UNROLL
    for (size_t i = 0; i < 4; i++, dst += 16, line += 16) {
        const uint8x16_t raw = vld1q_u8(line);
        const uint8x16_t even = kind == SP_WEIGHT_Q8S ? raw : vandq_u8(raw, vdupq_n_u8(15));
        sp_expand_r_block(kind, dst, even, c.q[i], m.q[i], first, table);
        if (kind == SP_WEIGHT_Q8S) continue;
        sp_expand_r_block(kind, dst + 64, vshrq_n_u8(raw, 4), c.q[i], m.q[i], second, table);
    }
}

SP_TEMPLATE void sp_expand_r_neon(sp_weight_kind kind, const sp_expand_r_args *args) {
    const size_t step = kind == SP_WEIGHT_Q8S ? 4 : 8;  // k of a line
    const uint8x16_t table = vld1q_u8(kind == SP_WEIGHT_Q8S ? sp_bytes_to_top : sp_nibbles_symmetric);
    const sp_f32x16 inv = sp_load16_neon(args->inv);
    int8_t *dst = args->dst;
    const float *s = args->s;
    for (size_t g = 0; g < args->k / SP_GROUP; g++) {
        const sp_weight_group w = sp_weight_group_at(kind, args->w, g);
        sp_f32x16 c = sp_expand_r_scales(w.scales, inv);
        SP_UNROLL
        for (int i = 0; i < 4; i++) c.q[i] = kind == SP_WEIGHT_Q4A ? vmulq_n_f32(c.q[i], 0x1p24f) : c.q[i];
        const sp_f32x16 m = kind == SP_WEIGHT_Q4A ? sp_expand_r_scales(w.minima, inv) : c;
        for (const uint8_t *line = w.data; line < w.data + SP_GROUP / step * 64; line += 64) {
            sp_expand_r_line(kind, dst, line, c, m, s, table);
            dst += 16 * step;
            s += step;
        }
    }
}
