// SPDX-License-Identifier: Apache-2.0
// Four groups of 32 at a time, so that maxima, divisions and sums of four groups share their instructions; and two
// passes over a block of sixteen groups, so that no store waits for a maximum and its division.
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

// Two neighbouring elements of a register: quads that lie `apart` bytes from each other. Integer stores are twice as
// many a cycle as stores from vector registers.
static inline void store_two(int8_t *q, size_t apart, long long bits) {
    sp_quant_store_quad(q, (int)bits);
    sp_quant_store_quad(q + apart, (int)((unsigned long long)bits >> 32));
}

// One lane of a pair of groups; `quad` is the distance of two quads, q the place of quad l of the first group.
static inline void store_lane(int8_t *q, size_t quad, __m128i v) {
    store_two(q, 4 * quad, _mm_cvtsi128_si64(v));
    store_two(q + 8 * quad, 4 * quad, _mm_extract_epi64(v, 1));
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

enum { BLOCK = 16 };  // groups

typedef struct factors {
    float inverse[BLOCK], scale[BLOCK];
    unsigned odd;  // bit i: group i is out of the ordinary range
} factors;

static inline void four_factors(factors *f, size_t i, const float *x) {
    const __m128i amax = reduce_max(group_max(x), group_max(x + 32), group_max(x + 64), group_max(x + 96));
    const __m128i above = _mm_sub_epi32(amax, _mm_set1_epi32(SP_QUANT_TINY));
    const unsigned odd = _mm_cmpge_epu32_mask(above, _mm_set1_epi32(SP_QUANT_HUGE - SP_QUANT_TINY));
    const __m128 most = _mm_set1_ps(127.0f);
    _mm_storeu_ps(f->inverse + i, _mm_div_ps(most, _mm_castsi128_ps(amax)));
    _mm_storeu_ps(f->scale + i, _mm_div_ps(_mm_castsi128_ps(amax), most));
    f->odd |= odd << i;
}

// Groups g..g+3, whose factors are at i.
static inline void four_groups(const sp_quant_args *args, size_t g, const factors *f, size_t i) {
    if (f->odd >> i & 15) {
        for (size_t j = 0; j < 4; j++) sp_quant_group(args, g + j);
        return;
    }
    const float *x = args->x + g * SP_GROUP;
    const __m512i a = group_words(x, _mm512_set1_ps(f->inverse[i]));
    const __m512i b = group_words(x + 32, _mm512_set1_ps(f->inverse[i + 1]));
    const __m512i c = group_words(x + 64, _mm512_set1_ps(f->inverse[i + 2]));
    const __m512i d = group_words(x + 96, _mm512_set1_ps(f->inverse[i + 3]));
    const __m512i first = _mm512_packs_epi16(a, b);
    const __m512i second = _mm512_packs_epi16(c, d);
    const size_t quad = 4 * args->width;
    int8_t *q = args->q + g * SP_GROUP * args->width;
    store_pair(q, quad, first);
    store_pair(q + 16 * quad, quad, second);
    sp_quant_store_facts(args, g, _mm_loadu_ps(f->scale + i), reduce_sum(first, second));
}

// Groups g..g+n-1; n is 4, 8, 12 or 16.
static void block(const sp_quant_args *args, size_t g, size_t n) {
    factors f;
    f.odd = 0;
    for (size_t i = 0; i < n; i += 4) four_factors(&f, i, args->x + (g + i) * SP_GROUP);
    for (size_t i = 0; i < n; i += 4) four_groups(args, g + i, &f, i);
}

void sp_quant_q8g32_f32_1x128_avx512(const sp_quant_args *args) {
    const size_t groups = args->n / SP_GROUP;
    if (groups < 4) {
        for (size_t g = 0; g < groups; g++) sp_quant_group(args, g);
        return;
    }
    const size_t whole = groups / 4 * 4;
    for (size_t g = 0; g < whole; g += BLOCK) block(args, g, whole - g < BLOCK ? whole - g : BLOCK);
    if (whole < groups) block(args, groups - 4, 4);
}
