// SPDX-License-Identifier: Apache-2.0
// Four rows at a time: their maxima share one reduction, their sums another, and their chains of dependent operations
// overlap. Rows that a last tile lacks are played by a scratch row.
//
// What is not visible enters the maximum as -infinity and is masked out of the exponentials.
#include <math.h>
#include <string.h>

#include "kernel/declare.h"
#include "kernel/simd/avx512.h"

enum { TILE = 4 };  // rows

// A row and the elements of it that count.
typedef struct row {
    float *s;
    uint64_t seen;
} row;

// Maximum per lane. _mm512_max_ps(a, b) is a > b ? a : b, so a NaN in `a` is passed over.
static inline __m512 lane_max(row r) {
    __m512 m = _mm512_set1_ps(-INFINITY);
    for (int i = 0; i < 4; i++) {
        m = _mm512_max_ps(_mm512_mask_loadu_ps(_mm512_set1_ps(-INFINITY), (__mmask16)(r.seen >> 16 * i), r.s + 16 * i),
                          m);
    }
    return m;
}

// The maxima of four rows, one in each element, never -0.
static inline __m128 reduce_max(__m512 a, __m512 b, __m512 c, __m512 d) {
    const __m512 ab = _mm512_max_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    const __m512 cd = _mm512_max_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    const __m512 m = _mm512_max_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
    const __m256 h = _mm256_max_ps(_mm512_castps512_ps256(m), _mm512_extractf32x8_ps(m, 1));
    const __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    return _mm_add_ps(q, _mm_setzero_ps());
}

// Exponentials of one row in place; returns its 16 lanes.
static inline __m512 exponentials(row r, __m512 max) {
    __m512 sum = _mm512_setzero_ps();
    for (int i = 0; i < 4; i++) {
        const __m512 x = _mm512_sub_ps(_mm512_loadu_ps(r.s + 16 * i), max);
        const __mmask16 keep =
            _mm512_mask_cmp_ps_mask((__mmask16)(r.seen >> 16 * i), x, _mm512_set1_ps(SP_EXP2_MIN), _CMP_NLT_UQ);
        const __m512 p = sp_exp2_kept_avx512(x, keep);
        _mm512_storeu_ps(r.s + 16 * i, p);
        sum = _mm512_add_ps(sum, p);
    }
    return sum;
}

// The tree over the lanes of four rows: 8 apart, 4 apart (whole 128-bit lanes), 2 apart, 1 apart.
static inline __m128 reduce_sum(__m512 a, __m512 b, __m512 c, __m512 d) {
    const __m512 ab = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    const __m512 cd = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
    __m512 s = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
    s = _mm512_add_ps(s, _mm512_permute_ps(s, 0x4e));
    s = _mm512_add_ps(s, _mm512_permute_ps(s, 0xb1));
    const __m512i first = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 8, 4, 0);
    return _mm512_castps512_ps128(_mm512_permutexvar_ps(first, s));
}

static inline void four_rows(const row r[TILE], float *max, float *sum) {
    const __m128 m = reduce_max(lane_max(r[0]), lane_max(r[1]), lane_max(r[2]), lane_max(r[3]));
    const __m512 a = exponentials(r[0], _mm512_broadcastss_ps(m));
    const __m512 b = exponentials(r[1], _mm512_broadcastss_ps(_mm_movehdup_ps(m)));
    const __m512 c = exponentials(r[2], _mm512_broadcastss_ps(_mm_permute_ps(m, 2)));
    const __m512 d = exponentials(r[3], _mm512_broadcastss_ps(_mm_permute_ps(m, 3)));
    _mm_storeu_ps(max, m);
    _mm_storeu_ps(sum, reduce_sum(a, b, c, d));
}

// Rows whose keys are all visible: the masks are constants.
static void four_whole_rows(float *s, size_t ld, float *max, float *sum) {
    const uint64_t all = ~(uint64_t)0;
    const row r[TILE] = {{s, all}, {s + ld, all}, {s + 2 * ld, all}, {s + 3 * ld, all}};
    four_rows(r, max, sum);
}

static void some_rows(const sp_softmax_args *args, size_t first, size_t count) {
    float scratch[SP_KEYS] = {0}, max[TILE], sum[TILE];
    row r[TILE] = {{scratch, 1}, {scratch, 1}, {scratch, 1}, {scratch, 1}};
    for (size_t i = 0; i < count; i++)
        r[i] = (row){args->s + (first + i) * args->ld, ~(uint64_t)0 >> (SP_KEYS - args->visible[first + i])};
    four_rows(r, max, sum);
    memcpy(args->max + first, max, count * sizeof *max);
    memcpy(args->sum + first, sum, count * sizeof *sum);
}

void sp_softmax_f32_f32_4x64_avx512(const sp_softmax_args *args) {
    static const uint8_t whole[TILE] = {SP_KEYS, SP_KEYS, SP_KEYS, SP_KEYS};
    for (size_t r = 0; r < args->rows; r += TILE) {
        const size_t count = args->rows - r < TILE ? args->rows - r : TILE;
        if (count == TILE && memcmp(args->visible + r, whole, TILE) == 0)
            four_whole_rows(args->s + r * args->ld, args->ld, args->max + r, args->sum + r);
        else some_rows(args, r, count);
    }
}
