// SPDX-License-Identifier: Apache-2.0
// Two passes over the row: its maximum, then its integers. x * u is made twice rather than kept; the row is in the
// first-level cache by then.
//
// Packing to bytes works inside 128-bit lanes: after it, lane l of 32 elements holds quads l and 4 + l, which go to
// lines of the panel 256 bytes apart. Those stores, one for four elements, each to a line of its own, are the bound.
#include "kernel/declare.h"
#include "kernel/quant/store.h"
#include "kernel/simd/avx512.h"

static inline __m512 scaled(const sp_quant_row_args *args, size_t i) {
    return _mm512_mul_ps(_mm512_loadu_ps(args->x + i), _mm512_loadu_ps(args->u + i));
}

static uint32_t row_max(const sp_quant_row_args *args) {
    const __m512i size = _mm512_set1_epi32(0x7fffffff);
    __m512i even = _mm512_setzero_si512(), odd = even;
    for (size_t i = 0; i < args->n; i += 32) {
        even = _mm512_max_epi32(even, _mm512_and_si512(_mm512_castps_si512(scaled(args, i)), size));
        odd = _mm512_max_epi32(odd, _mm512_and_si512(_mm512_castps_si512(scaled(args, i + 16)), size));
    }
    return (uint32_t)_mm512_reduce_max_epi32(_mm512_max_epi32(even, odd));
}

// Two quads that lie four lines apart, from the low half of a lane.
static inline void store_two(int8_t *q, __m128i lane) {
    const uint64_t bits = (uint64_t)_mm_cvtsi128_si64(lane);
    sp_quant_store_quad(q, (int)bits);
    sp_quant_store_quad(q + 4 * 64, (int)(bits >> 32));
}

void sp_quant_q8r_f32_1x32_avx512(const sp_quant_row_args *args) {
    const uint32_t amax = row_max(args);
    if (amax < SP_QUANT_TINY || amax >= SP_QUANT_HUGE) {
        sp_quant_q8r_f32_1x32_ref(args);
        return;
    }
    const __m512 inverse = _mm512_set1_ps(127.0f / sp_f32_from_bits(amax));
    __m512i sum = _mm512_setzero_si512();
    int8_t *q = args->q;
    for (size_t i = 0; i < args->n; i += 32, q += 8 * 64) {
        const __m512i a = _mm512_cvtps_epi32(_mm512_mul_ps(scaled(args, i), inverse));
        const __m512i b = _mm512_cvtps_epi32(_mm512_mul_ps(scaled(args, i + 16), inverse));
        const __m512i words = _mm512_packs_epi32(a, b), bytes = _mm512_packs_epi16(words, words);
        store_two(q, _mm512_castsi512_si128(bytes));
        store_two(q + 64, _mm512_extracti32x4_epi32(bytes, 1));
        store_two(q + 2 * 64, _mm512_extracti32x4_epi32(bytes, 2));
        store_two(q + 3 * 64, _mm512_extracti32x4_epi32(bytes, 3));
        sum = _mm512_add_epi32(sum, _mm512_add_epi32(a, b));
    }
    *args->d = sp_f32_from_bits(amax) / 127.0f;
    *args->neg = -_mm512_reduce_add_epi32(sum);
}
