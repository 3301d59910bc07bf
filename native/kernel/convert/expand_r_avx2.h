// SPDX-License-Identifier: Apache-2.0
// Expansion of a quantised weight panel to int8 with one scale per row, half a line (8 rows x 4 columns) at a time.
//
// A 32-bit element of a line is one row's four columns, so VPSHUFB spreads column i of all rows over the elements, with
// rows in their places: their factors multiply it as they lie, the column's smoothing is a broadcast. Values stay
// unsigned until they are floats, where their offset is subtracted.
//
// Four columns go back into a half line by two packs, which leave [column][row] in each 128-bit lane, and one VPSHUFB.
// Results lie within -127..127, so the packs never saturate.
#pragma once

#include <immintrin.h>

#include "kernel/gemm/gemm.h"

enum { SP_EXPAND_AHEAD = 4096 };  // bytes: weights come from memory, and a core does not run far enough ahead by itself

// One 128-bit pattern in both lanes.
SP_TEMPLATE __m256i sp_in_lanes(int a, int b, int c, int d) {
    return _mm256_broadcastsi128_si256(_mm_setr_epi32(a, b, c, d));
}

// Factors of 8 rows within a group.
typedef struct sp_expand_rows {
    __m256 c, m;  // d * inv; affine: m * inv
} sp_expand_rows;

SP_TEMPLATE __m256 sp_rows_f16(const uint16_t *x) {
    return _mm256_cvtph_ps(_mm_load_si128((const __m128i *)(const void *)x));
}

// Column i of eight rows; `bytes` holds them with their offset.
SP_TEMPLATE __m256i sp_expand_column(sp_weight_kind kind, const sp_expand_rows *rows, __m256i bytes, int i, float s) {
    const int place = (int)0x80808000u + i;  // byte i of each element, zeros above it
    const __m256i spread = _mm256_shuffle_epi8(bytes, sp_in_lanes(place, place + 4, place + 8, place + 12));
    const __m256 u = _mm256_cvtepi32_ps(spread);
    const __m256 q = kind == SP_WEIGHT_Q4A ? u : _mm256_sub_ps(u, _mm256_set1_ps(kind == SP_WEIGHT_Q4S ? 8 : 128));
    const __m256 z = kind == SP_WEIGHT_Q4A ? _mm256_fmadd_ps(rows->c, q, rows->m) : _mm256_mul_ps(rows->c, q);
    return _mm256_cvtps_epi32(_mm256_mul_ps(z, _mm256_set1_ps(s)));
}

// Half a line.
SP_TEMPLATE void sp_expand_half(sp_weight_kind kind, int8_t *dst, const sp_expand_rows *rows, __m256i bytes,
                                const float *s) {
    const __m256i transpose = sp_in_lanes(0x0c080400, 0x0d090501, 0x0e0a0602, 0x0f0b0703);
    const __m256i a = sp_expand_column(kind, rows, bytes, 0, s[0]), b = sp_expand_column(kind, rows, bytes, 1, s[1]);
    const __m256i c = sp_expand_column(kind, rows, bytes, 2, s[2]), d = sp_expand_column(kind, rows, bytes, 3, s[3]);
    const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    _mm256_store_si256((__m256i *)(void *)dst, _mm256_shuffle_epi8(packed, transpose));
}

// Half of the lines of a group: rows 0-7 or 8-15.
SP_TEMPLATE void sp_expand_group(sp_weight_kind kind, int8_t *dst, const sp_expand_rows *rows, const uint8_t *data,
                                 const float *s) {
    const __m256i low = _mm256_set1_epi8(15), flip = _mm256_set1_epi8((char)0x80);
    for (int i = 0; i < (kind == SP_WEIGHT_Q8S ? 8 : 4); i++) {
        const __m256i v = _mm256_load_si256((const __m256i *)(const void *)(data + 64 * i));
        _mm_prefetch((const char *)data + 64 * i + SP_EXPAND_AHEAD, _MM_HINT_T0);
        if (kind == SP_WEIGHT_Q8S) {
            sp_expand_half(kind, dst + 64 * i, rows, _mm256_xor_si256(v, flip), s + 4 * i);
        } else {
            sp_expand_half(kind, dst + 128 * i, rows, _mm256_and_si256(v, low), s + 8 * i);
            const __m256i odd = _mm256_and_si256(_mm256_srli_epi16(v, 4), low);
            sp_expand_half(kind, dst + 128 * i + 64, rows, odd, s + 8 * i + 4);
        }
    }
}

SP_TEMPLATE void sp_expand_r_avx2(sp_weight_kind kind, const sp_expand_r_args *args) {
    for (size_t g = 0; g < args->k / SP_GROUP; g++) {
        const sp_weight_group w = sp_weight_group_at(kind, args->w, g);
        int8_t *dst = args->dst + g * 16 * SP_GROUP;
        for (size_t half = 0; half < 2; half++) {
            const __m256 inv = _mm256_loadu_ps(args->inv + 8 * half);
            sp_expand_rows rows = {.c = _mm256_mul_ps(sp_rows_f16(w.scales + 8 * half), inv)};
            if (kind == SP_WEIGHT_Q4A) rows.m = _mm256_mul_ps(sp_rows_f16(w.minima + 8 * half), inv);
            sp_expand_group(kind, dst + 32 * half, &rows, w.data + 32 * half, args->s + g * SP_GROUP);
        }
    }
}
