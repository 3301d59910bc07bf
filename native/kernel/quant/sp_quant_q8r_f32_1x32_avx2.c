// SPDX-License-Identifier: Apache-2.0
// Two passes over the row: its maximum, then its integers. x * u is made twice rather than kept; the row is in the
// first-level cache by then.
//
// Packing to bytes works inside 128-bit lanes: after it, lane l of 32 elements holds quads l, 2 + l, 4 + l and 6 + l.
// Their stores, one for four elements, each to a line of the panel of its own, are the bound.
#include "kernel/declare.h"
#include "kernel/quant/store.h"

static inline __m256 scaled(const sp_quant_row_args *args, size_t i) {
    return _mm256_mul_ps(_mm256_loadu_ps(args->x + i), _mm256_loadu_ps(args->u + i));
}

static inline __m256i size_of(const sp_quant_row_args *args, size_t i) {
    return _mm256_and_si256(_mm256_castps_si256(scaled(args, i)), _mm256_set1_epi32(0x7fffffff));
}

static uint32_t row_max(const sp_quant_row_args *args) {
    __m256i even = _mm256_setzero_si256(), odd = even;
    for (size_t i = 0; i < args->n; i += 16) {
        even = _mm256_max_epi32(even, size_of(args, i));
        odd = _mm256_max_epi32(odd, size_of(args, i + 8));
    }
    const __m256i all = _mm256_max_epi32(even, odd);
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}

static inline __m256i integers(const sp_quant_row_args *args, size_t i, __m256 inverse) {
    return _mm256_cvtps_epi32(_mm256_mul_ps(scaled(args, i), inverse));
}

// One lane: quads that lie two lines apart.
static inline void store_lane(int8_t *q, __m128i v) {
    sp_quant_store_quad(q, _mm_cvtsi128_si32(v));
    sp_quant_store_quad(q + 2 * 64, _mm_extract_epi32(v, 1));
    sp_quant_store_quad(q + 4 * 64, _mm_extract_epi32(v, 2));
    sp_quant_store_quad(q + 6 * 64, _mm_extract_epi32(v, 3));
}

static inline int32_t sum_of(__m256i v) {
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    return _mm_cvtsi128_si32(s);
}

void sp_quant_q8r_f32_1x32_avx2(const sp_quant_row_args *args) {
    const uint32_t amax = row_max(args);
    if (amax < SP_QUANT_TINY || amax >= SP_QUANT_HUGE) {
        sp_quant_q8r_f32_1x32_ref(args);
        return;
    }
    const __m256 inverse = _mm256_set1_ps(127.0f / sp_f32_from_bits(amax));
    __m256i sum = _mm256_setzero_si256();
    int8_t *q = args->q;
    for (size_t i = 0; i < args->n; i += 32, q += 8 * 64) {
        const __m256i a = integers(args, i, inverse), b = integers(args, i + 8, inverse);
        const __m256i c = integers(args, i + 16, inverse), d = integers(args, i + 24, inverse);
        const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
        store_lane(q, _mm256_castsi256_si128(bytes));
        store_lane(q + 64, _mm256_extracti128_si256(bytes, 1));
        sum = _mm256_add_epi32(sum, _mm256_add_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(c, d)));
    }
    *args->d = sp_f32_from_bits(amax) / 127.0f;
    *args->neg = -sum_of(sum);
}
