// SPDX-License-Identifier: Apache-2.0
// Eight halfwords to a strided destination. x86 has no 16-bit scatter; eight two-byte stores it is.
#pragma once

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

static inline void sp_scatter8_u16(uint16_t *dst, size_t stride, __m128i v) {
    dst[0] = (uint16_t)_mm_extract_epi16(v, 0);
    dst[stride] = (uint16_t)_mm_extract_epi16(v, 1);
    dst[2 * stride] = (uint16_t)_mm_extract_epi16(v, 2);
    dst[3 * stride] = (uint16_t)_mm_extract_epi16(v, 3);
    dst[4 * stride] = (uint16_t)_mm_extract_epi16(v, 4);
    dst[5 * stride] = (uint16_t)_mm_extract_epi16(v, 5);
    dst[6 * stride] = (uint16_t)_mm_extract_epi16(v, 6);
    dst[7 * stride] = (uint16_t)_mm_extract_epi16(v, 7);
}
