// SPDX-License-Identifier: Apache-2.0
// float16 and bfloat16, one value at a time: the definition that every kernel's conversion has to equal.
//
// To float32 is exact. From float32 rounds to nearest, ties to even; what is too large becomes infinity, subnormals
// are made and read, never flushed. A NaN stays a NaN: quiet, its sign and upper payload bits kept, as F16C and
// FCVT do. Assumes the default rounding mode.
#pragma once

#include <stdint.h>
#include <string.h>

static inline uint32_t sp_f32_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float sp_f32_from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float sp_f16_to_f32(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = half >> 10 & 0x1fu;
    uint32_t fraction = half & 0x3ffu;
    if (exponent == 0)   // zero or subnormal: a multiple of 2^-24
        return sp_f32_from_bits(sign | sp_f32_bits((float)fraction * 0x1p-24f));
    if (exponent == 31) return sp_f32_from_bits(sign | 0x7f800000u | fraction << 13 | (fraction != 0 ? 0x400000u : 0u));
    return sp_f32_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

static inline uint16_t sp_f32_to_f16(float x) {
    uint32_t bits = sp_f32_bits(x);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    uint32_t size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (size >> 13 & 0x3ffu));
    if (size >= 0x477ff000u)   // 65520, halfway between the largest float16 and 2^16
        return sign | 0x7c00u;
    if (size < 0x38800000u)   // below 2^-14: adding 0.5, whose unit is 2^-24, rounds to the subnormals' grid
        return (uint16_t)(sign | (sp_f32_bits(sp_f32_from_bits(size) + 0.5f) - 0x3f000000u));
    return (uint16_t)(sign | (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13);
}

static inline float sp_bf16_to_f32(uint16_t brain) {
    uint32_t bits = (uint32_t)brain << 16;
    if ((bits & 0x7fffffffu) > 0x7f800000u) bits |= 0x400000u;
    return sp_f32_from_bits(bits);
}

static inline uint16_t sp_f32_to_bf16(float x) {
    uint32_t bits = sp_f32_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
