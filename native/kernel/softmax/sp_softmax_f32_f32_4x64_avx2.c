// SPDX-License-Identifier: Apache-2.0
// Four rows at a time: their maxima share one reduction, their sums another, and their chains of dependent operations
// overlap. Rows that a last tile lacks are played by a scratch row.
//
// What is not visible enters the maximum as -infinity, and its exponential is masked to +0.
#include <math.h>
#include <string.h>

#include "kernel/declare.h"
#include "kernel/simd/avx2.h"

enum { TILE = 4 };  // rows

// A row and how many elements of it count.
typedef struct row {
    float *s;
    int visible;
} row;

// All bits of the elements from 8 * i on that count.
static inline __m256 seen(row r, int i) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(r.visible - 8 * i), lane));
}

// Maximum per lane. _mm256_max_ps(a, b) is a > b ? a : b, so a NaN in `a` is passed over.
static inline __m256 lane_max(row r) {
    const __m256 least = _mm256_set1_ps(-INFINITY);
    __m256 m = least;
    for (int i = 0; i < 8; i++) {
        const __m256 v = _mm256_loadu_ps(r.s + 8 * i);
        m = _mm256_max_ps(r.visible == SP_KEYS ? v : _mm256_blendv_ps(least, v, seen(r, i)), m);
    }
    return m;
}

// The maxima of four rows, one in each element, never -0.
static inline __m128 reduce_max(__m256 a, __m256 b, __m256 c, __m256 d) {
    const __m256 ab = _mm256_max_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    const __m256 cd = _mm256_max_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    const __m256 m = _mm256_max_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
    const __m128 q = _mm_max_ps(_mm256_castps256_ps128(m), _mm256_extractf128_ps(m, 1));
    return _mm_add_ps(q, _mm_setzero_ps());
}

// Exponentials of one row in place; returns lanes j and j + 8 of its sum, added.
static inline __m256 exponentials(row r, __m256 max) {
    __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (int i = 0; i < 8; i++) {
        const __m256 e = sp_exp2_small_avx2(_mm256_sub_ps(_mm256_loadu_ps(r.s + 8 * i), max));
        const __m256 p = r.visible == SP_KEYS ? e : _mm256_and_ps(e, seen(r, i));
        _mm256_storeu_ps(r.s + 8 * i, p);
        sum[i % 2] = _mm256_add_ps(sum[i % 2], p);
    }
    return _mm256_add_ps(sum[0], sum[1]);
}

// The rest of the tree over four rows: lanes 4 apart (whole 128-bit lanes), 2 apart, 1 apart.
static inline __m128 reduce_sum(__m256 a, __m256 b, __m256 c, __m256 d) {
    const __m256 ab = _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    const __m256 cd = _mm256_add_ps(_mm256_permute2f128_ps(c, d, 0x20), _mm256_permute2f128_ps(c, d, 0x31));
    const __m256 s = _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
    const __m256 t = _mm256_add_ps(s, _mm256_movehdup_ps(s));  // rows a, -, c, - and b, -, d, -
    return _mm_unpacklo_ps(_mm_permute_ps(_mm256_castps256_ps128(t), 0x88),
                           _mm_permute_ps(_mm256_extractf128_ps(t, 1), 0x88));
}

static inline void four_rows(const row r[TILE], float *max, float *sum) {
    const __m128 m = reduce_max(lane_max(r[0]), lane_max(r[1]), lane_max(r[2]), lane_max(r[3]));
    const __m256 a = exponentials(r[0], _mm256_broadcastss_ps(m));
    const __m256 b = exponentials(r[1], _mm256_broadcastss_ps(_mm_movehdup_ps(m)));
    const __m256 c = exponentials(r[2], _mm256_broadcastss_ps(_mm_permute_ps(m, 2)));
    const __m256 d = exponentials(r[3], _mm256_broadcastss_ps(_mm_permute_ps(m, 3)));
    _mm_storeu_ps(max, m);
    _mm_storeu_ps(sum, reduce_sum(a, b, c, d));
}

// Rows whose keys are all visible: no masks.
static void four_whole_rows(float *s, size_t ld, float *max, float *sum) {
    const row r[TILE] = {{s, SP_KEYS}, {s + ld, SP_KEYS}, {s + 2 * ld, SP_KEYS}, {s + 3 * ld, SP_KEYS}};
    four_rows(r, max, sum);
}

static void some_rows(const sp_softmax_args *args, size_t first, size_t count) {
    float scratch[SP_KEYS] = {0}, max[TILE], sum[TILE];
    row r[TILE] = {{scratch, 1}, {scratch, 1}, {scratch, 1}, {scratch, 1}};
    for (size_t i = 0; i < count; i++) r[i] = (row){args->s + (first + i) * args->ld, args->visible[first + i]};
    four_rows(r, max, sum);
    memcpy(args->max + first, max, count * sizeof *max);
    memcpy(args->sum + first, sum, count * sizeof *sum);
}

void sp_softmax_f32_f32_4x64_avx2(const sp_softmax_args *args) {
    static const uint8_t whole[TILE] = {SP_KEYS, SP_KEYS, SP_KEYS, SP_KEYS};
    for (size_t r = 0; r < args->rows; r += TILE) {
        const size_t count = args->rows - r < TILE ? args->rows - r : TILE;
        if (count == TILE && memcmp(args->visible + r, whole, TILE) == 0)
            four_whole_rows(args->s + r * args->ld, args->ld, args->max + r, args->sum + r);
        else some_rows(args, r, count);
    }
}
