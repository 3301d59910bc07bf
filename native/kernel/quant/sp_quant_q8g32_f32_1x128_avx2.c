// SPDX-License-Identifier: Apache-2.0
// Four groups of 32 at a time, so that maxima, divisions and sums of four groups share their instructions.
//
// Packing to bytes works inside 128-bit lanes: after it, lane l of a group's register holds quads l, 2 + l, 4 + l and
// 6 + l. Quads are stored straight from there, four bytes each, since neighbours in k lie 4 * width bytes apart.
// A row whose groups are no multiple of four ends with a tile that overlaps the one before: it writes the same values.
#include "kernel/declare.h"
#include "kernel/quant/group.h"
#include "kernel/quant/store.h"
#include "kernel/simd/avx2.h"

static inline __m256i load_size(const float *x) {
    return _mm256_and_si256(_mm256_loadu_si256((const __m256i *)x), _mm256_set1_epi32(0x7fffffff));
}

// max |x| of the group at x, as bit patterns, still spread over 8 lanes.
static inline __m256i group_max(const float *x) {
    const __m256i a = _mm256_max_epi32(load_size(x), load_size(x + 8));
    const __m256i b = _mm256_max_epi32(load_size(x + 16), load_size(x + 24));
    return _mm256_max_epi32(a, b);
}

// The maxima of four spread groups, one in each element.
static inline __m128i reduce_max(__m256i a, __m256i b, __m256i c, __m256i d) {
    const __m256i ab = _mm256_max_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    const __m256i cd = _mm256_max_epi32(_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
    const __m256i m = _mm256_max_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
    return _mm_max_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
}

static inline __m256i quarter(const float *x, __m256 inverse) {
    return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inverse));
}

static inline __m256i group_bytes(const float *x, __m256 inverse) {
    const __m256i a = _mm256_packs_epi32(quarter(x, inverse), quarter(x + 8, inverse));
    const __m256i b = _mm256_packs_epi32(quarter(x + 16, inverse), quarter(x + 24, inverse));
    return _mm256_packs_epi16(a, b);
}

// One lane of a group; `quad` is the distance of two quads, q the place of quad l.
static inline void store_lane(int8_t *q, size_t quad, __m128i v) {
    sp_quant_store_quad(q, _mm_cvtsi128_si32(v));
    sp_quant_store_quad(q + 2 * quad, _mm_extract_epi32(v, 1));
    sp_quant_store_quad(q + 4 * quad, _mm_extract_epi32(v, 2));
    sp_quant_store_quad(q + 6 * quad, _mm_extract_epi32(v, 3));
}

// Stores a group and returns its sum, spread over 8 lanes.
static inline __m256i store_group(int8_t *q, size_t quad, __m256i v) {
    store_lane(q, quad, _mm256_castsi256_si128(v));
    store_lane(q + quad, quad, _mm256_extracti128_si256(v, 1));
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), v);
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

static inline void four_groups(const sp_quant_args *args, size_t g) {
    const float *x = args->x + g * SP_GROUP;
    const __m128i amax = reduce_max(group_max(x), group_max(x + 32), group_max(x + 64), group_max(x + 96));
    const __m128i tiny = _mm_cmpgt_epi32(_mm_set1_epi32(SP_QUANT_TINY), amax);
    const __m128i huge = _mm_cmpgt_epi32(amax, _mm_set1_epi32(SP_QUANT_HUGE - 1));
    if (_mm_movemask_epi8(_mm_or_si128(tiny, huge)) != 0) {
        for (size_t i = 0; i < 4; i++) sp_quant_group(args, g + i);
        return;
    }
    const __m128 most = _mm_set1_ps(127.0f);
    const __m128 size = _mm_castsi128_ps(amax);
    const __m128 inverse = _mm_div_ps(most, size);
    const size_t quad = 4 * args->width;
    int8_t *q = args->q + g * SP_GROUP * args->width;
    const __m256 i0 = _mm256_broadcastss_ps(inverse);
    const __m256 i1 = _mm256_broadcastss_ps(_mm_movehdup_ps(inverse));
    const __m256 i2 = _mm256_broadcastss_ps(_mm_permute_ps(inverse, 2));
    const __m256 i3 = _mm256_broadcastss_ps(_mm_permute_ps(inverse, 3));
    const __m256i a = store_group(q, quad, group_bytes(x, i0));
    const __m256i b = store_group(q + 8 * quad, quad, group_bytes(x + 32, i1));
    const __m256i c = store_group(q + 16 * quad, quad, group_bytes(x + 64, i2));
    const __m256i d = store_group(q + 24 * quad, quad, group_bytes(x + 96, i3));
    const __m256i sum = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    const __m128i total = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    sp_quant_store_facts(args, g, _mm_div_ps(size, most), total);
}

void sp_quant_q8g32_f32_1x128_avx2(const sp_quant_args *args) {
    const size_t groups = args->n / SP_GROUP;
    if (groups < 4) {
        for (size_t g = 0; g < groups; g++) sp_quant_group(args, g);
        return;
    }
    for (size_t g = 0; g + 4 <= groups; g += 4) four_groups(args, g);
    if (groups % 4 != 0) four_groups(args, groups - 4);
}
