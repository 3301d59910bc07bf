// SPDX-License-Identifier: Apache-2.0
// Four groups of 32 at a time, so that maxima, divisions and sums of four groups share their instructions.
//
// Packing to bytes works inside 128-bit lanes: after it, lane l of a pair's register holds quads l and 4 + l of the
// first group, then quads l and 4 + l of the second. Quads are stored straight from there, four bytes each, since
// neighbours in k lie 4 * width bytes apart.
// A row whose groups are no multiple of four ends with a tile that overlaps the one before: it writes the same values.
#include "kernel/declare.h"
#include "kernel/quant/group.h"
#include "kernel/quant/store.h"
#include "kernel/simd/avx512.h"

// max |x| of the group at x, as bit patterns, still spread over 16 lanes.
static inline __m512i group_max(const float *x) {
    const __m512i size = _mm512_set1_epi32(0x7fffffff);
    const __m512i a = _mm512_and_si512(_mm512_loadu_si512(x), size);
    const __m512i b = _mm512_and_si512(_mm512_loadu_si512(x + 16), size);
    return _mm512_max_epi32(a, b);
}

// The maxima of four spread groups, one in each element.
static inline __m128i reduce_max(__m512i a, __m512i b, __m512i c, __m512i d) {
    const __m512i ab = _mm512_max_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    const __m512i cd = _mm512_max_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    const __m512i m = _mm512_max_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    const __m256i h = _mm256_max_epi32(_mm512_castsi512_si256(m), _mm512_extracti32x8_epi32(m, 1));
    return _mm_max_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
}

// 32-bit quarters of one group -> 16-bit, lane l: elements 4l..4l+3 and 16+4l..16+4l+3.
static inline __m512i group_words(const float *x, __m512 inverse) {
    const __m512i a = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), inverse));
    const __m512i b = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + 16), inverse));
    return _mm512_packs_epi32(a, b);
}

// One lane of a pair of groups; `quad` is the distance of two quads, q the place of quad l of the first group.
static inline void store_lane(int8_t *q, size_t quad, __m128i v) {
    sp_quant_store_quad(q, _mm_cvtsi128_si32(v));
    sp_quant_store_quad(q + 4 * quad, _mm_extract_epi32(v, 1));
    sp_quant_store_quad(q + 8 * quad, _mm_extract_epi32(v, 2));
    sp_quant_store_quad(q + 12 * quad, _mm_extract_epi32(v, 3));
}

static inline void store_pair(int8_t *q, size_t quad, __m512i v) {
    store_lane(q, quad, _mm512_castsi512_si128(v));
    store_lane(q + quad, quad, _mm512_extracti32x4_epi32(v, 1));
    store_lane(q + 2 * quad, quad, _mm512_extracti32x4_epi32(v, 2));
    store_lane(q + 3 * quad, quad, _mm512_extracti32x4_epi32(v, 3));
}

// Sums of the four groups in two pairs' registers, one in each element.
static inline __m128i reduce_sum(__m512i first, __m512i second) {
    const __m512i ones = _mm512_set1_epi8(1);
    const __m512 a = _mm512_castsi512_ps(_mm512_dpbusd_epi32(_mm512_setzero_si512(), ones, first));
    const __m512 b = _mm512_castsi512_ps(_mm512_dpbusd_epi32(_mm512_setzero_si512(), ones, second));
    const __m512i even = _mm512_castps_si512(_mm512_shuffle_ps(a, b, 0x88));
    const __m512i odd = _mm512_castps_si512(_mm512_shuffle_ps(a, b, 0xdd));
    const __m512i s = _mm512_add_epi32(even, odd);
    const __m256i h = _mm256_add_epi32(_mm512_castsi512_si256(s), _mm512_extracti32x8_epi32(s, 1));
    return _mm_add_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
}

static inline void four_groups(const sp_quant_args *args, size_t g) {
    const float *x = args->x + g * SP_GROUP;
    const __m128i amax = reduce_max(group_max(x), group_max(x + 32), group_max(x + 64), group_max(x + 96));
    const __m128i above = _mm_sub_epi32(amax, _mm_set1_epi32(SP_QUANT_TINY));
    if (_mm_cmpge_epu32_mask(above, _mm_set1_epi32(SP_QUANT_HUGE - SP_QUANT_TINY))) {
        for (size_t i = 0; i < 4; i++) sp_quant_group(args, g + i);
        return;
    }
    const __m128 most = _mm_set1_ps(127.0f);
    const __m128 size = _mm_castsi128_ps(amax);
    const __m128 inverse = _mm_div_ps(most, size);
    const __m512 i0 = _mm512_broadcastss_ps(inverse);
    const __m512 i1 = _mm512_broadcastss_ps(_mm_movehdup_ps(inverse));
    const __m512 i2 = _mm512_broadcastss_ps(_mm_permute_ps(inverse, 2));
    const __m512 i3 = _mm512_broadcastss_ps(_mm_permute_ps(inverse, 3));
    const __m512i first = _mm512_packs_epi16(group_words(x, i0), group_words(x + 32, i1));
    const __m512i second = _mm512_packs_epi16(group_words(x + 64, i2), group_words(x + 96, i3));
    const size_t quad = 4 * args->width;
    int8_t *q = args->q + g * SP_GROUP * args->width;
    store_pair(q, quad, first);
    store_pair(q + 16 * quad, quad, second);
    sp_quant_store_facts(args, g, _mm_div_ps(size, most), reduce_sum(first, second));
}

void sp_quant_q8g32_f32_1x128_avx512(const sp_quant_args *args) {
    const size_t groups = args->n / SP_GROUP;
    if (groups < 4) {
        for (size_t g = 0; g < groups; g++) sp_quant_group(args, g);
        return;
    }
    for (size_t g = 0; g + 4 <= groups; g += 4) four_groups(args, g);
    if (groups % 4 != 0) four_groups(args, groups - 4);
}
