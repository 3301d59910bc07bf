// SPDX-License-Identifier: Apache-2.0
// Expansion of a quantised weight panel to int8 with one scale per row, a line of 16 rows x 4 columns at a time.
//
// A 32-bit element of a line is one row's four columns, so column i of all rows is a byte (or nibble) of every element,
// and comes out with rows in their places: their factors multiply it as they lie, the column's smoothing is a
// broadcast. Nibbles become floats by a look-up: VPERMPS reads the lowest four bits of each element, so it takes a
// shift and no mask. Bytes are spread by VPSHUFB, as unsigned, and lose their offset as floats.
//
// Four columns go back into a line by two packs, which leave [column][row] in each 128-bit lane, and one VPSHUFB.
// Results lie within -127..127, so the packs never saturate.
#pragma once

#include <immintrin.h>

#include "kernel/gemm/gemm.h"

enum { SP_EXPAND_AHEAD = 4096 };  // bytes: weights come from memory, and a core does not run far enough ahead by itself

// One 128-bit pattern in all four lanes.
SP_TEMPLATE __m512i sp_in_lanes(int a, int b, int c, int d) {
    return _mm512_broadcast_i32x4(_mm_setr_epi32(a, b, c, d));
}

// Factors of 16 rows within a group.
typedef struct sp_expand_rows {
    __m512 c, m;  // d * inv; affine: m * inv
} sp_expand_rows;

SP_TEMPLATE __m512 sp_rows_f16(const uint16_t *x) {
    return _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)(const void *)x));
}

// A column's values, as floats without the offset of q, to integers.
SP_TEMPLATE __m512i sp_expand_column(sp_weight_kind kind, const sp_expand_rows *rows, __m512 q, float s) {
    const __m512 z = kind == SP_WEIGHT_Q4A ? _mm512_fmadd_ps(rows->c, q, rows->m) : _mm512_mul_ps(rows->c, q);
    return _mm512_cvtps_epi32(_mm512_mul_ps(z, _mm512_set1_ps(s)));
}

SP_TEMPLATE void sp_expand_store(int8_t *dst, const __m512i e[4]) {
    const __m512i transpose = sp_in_lanes(0x0c080400, 0x0d090501, 0x0e0a0602, 0x0f0b0703);
    const __m512i words = _mm512_packs_epi32(e[0], e[1]), more = _mm512_packs_epi32(e[2], e[3]);
    _mm512_store_si512(dst, _mm512_shuffle_epi8(_mm512_packs_epi16(words, more), transpose));
}

// Two lines from one of nibbles: the even quad lies in the low ones.
SP_TEMPLATE void sp_expand_q4(sp_weight_kind kind, int8_t *dst, __m512i line, const sp_expand_rows *rows,
                              const float *s) {
    const float offset = kind == SP_WEIGHT_Q4S ? 8.0f : 0.0f;
    const __m512 table =
        _mm512_sub_ps(_mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), _mm512_set1_ps(offset));
    for (int quad = 0; quad < 2; quad++) {
        __m512i e[4];
        SP_UNROLL
        for (int i = 0; i < 4; i++) {
            const __m512i q = _mm512_srli_epi32(line, (unsigned)(8 * i + 4 * quad));
            e[i] = sp_expand_column(kind, rows, _mm512_permutexvar_ps(q, table), s[4 * quad + i]);
        }
        sp_expand_store(dst + 64 * quad, e);
    }
}

SP_TEMPLATE void sp_expand_q8(int8_t *dst, __m512i line, const sp_expand_rows *rows, const float *s) {
    __m512i e[4];
    SP_UNROLL
    for (int i = 0; i < 4; i++) {
        const __m512i q = _mm512_srai_epi32(_mm512_slli_epi32(line, (unsigned)(24 - 8 * i)), 24);
        e[i] = sp_expand_column(SP_WEIGHT_Q8S, rows, _mm512_cvtepi32_ps(q), s[i]);
    }
    sp_expand_store(dst, e);
}

SP_TEMPLATE void sp_expand_r_avx512(sp_weight_kind kind, const sp_expand_r_args *args) {
    const __m512 inv = _mm512_loadu_ps(args->inv);
    int8_t *dst = args->dst;
    const float *s = args->s;
    for (size_t g = 0; g < args->k / SP_GROUP; g++, dst += 16 * SP_GROUP, s += SP_GROUP) {
        const sp_weight_group w = sp_weight_group_at(kind, args->w, g);
        sp_expand_rows rows = {.c = _mm512_mul_ps(sp_rows_f16(w.scales), inv)};
        if (kind == SP_WEIGHT_Q4A) rows.m = _mm512_mul_ps(sp_rows_f16(w.minima), inv);
        for (int i = 0; i < (kind == SP_WEIGHT_Q8S ? 8 : 4); i++) {
            const __m512i line = _mm512_load_si512(w.data + 64 * i);
            _mm_prefetch((const char *)w.data + 64 * i + SP_EXPAND_AHEAD, _MM_HINT_T0);
            if (kind == SP_WEIGHT_Q8S) sp_expand_q8(dst + 64 * i, line, &rows, s + 4 * i);
            else sp_expand_q4(kind, dst + 128 * i, line, &rows, s + 8 * i);
        }
    }
}
