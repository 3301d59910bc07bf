// SPDX-License-Identifier: Apache-2.0
// Four rows at a time: their maxima share one reduction, their sums another, so that no row waits for its own.
//
// What is not visible is set to -infinity before: it then neither raises the maximum nor adds to the sum.
// FMAXNM passes over NaN, as the definition does: scores are results of arithmetic, so theirs are quiet.
#include <math.h>

#include "kernel/declare.h"
#include "kernel/simd/neon.h"

enum { TILE = 4 };  // rows

// Sets the elements of a row from `first` on.
static inline void fill_from(float *s, size_t first, float value) {
    static const uint32_t places[4] = {0, 1, 2, 3};
    const float32x4_t v = vdupq_n_f32(value);
    float *at = s + first / 4 * 4;
    if (first % 4 != 0) {
        const uint32x4_t keep = vcltq_u32(vld1q_u32(places), vdupq_n_u32((uint32_t)first % 4));
        vst1q_f32(at, vbslq_f32(keep, vld1q_f32(at), v));
        at += 4;
    }
    for (; at < s + SP_KEYS; at += 4) vst1q_f32(at, v);
}

// Maximum of each of four lanes; NaN where all are.
SP_TEMPLATE float32x4_t lane_max(const float *s) {
    sp_f32x16 m = sp_load16_neon(s);
    SP_UNROLL
    for (int i = 16; i < SP_KEYS; i += 16) {
        const sp_f32x16 v = sp_load16_neon(s + i);
        SP_UNROLL
        for (int j = 0; j < 4; j++) m.q[j] = vmaxnmq_f32(m.q[j], v.q[j]);
    }
    return vmaxnmq_f32(vmaxnmq_f32(m.q[0], m.q[1]), vmaxnmq_f32(m.q[2], m.q[3]));
}

// Exponentials of one row in place. Returns lanes 0-3 of the tree's second level.
SP_TEMPLATE float32x4_t exponentials(float *s, float32x4_t max) {
    const float32x4_t zero = vdupq_n_f32(0.0f);
    sp_f32x16 sum = {{zero, zero, zero, zero}};
    SP_ROLLED
    for (int i = 0; i < SP_KEYS; i += 16) {
        sp_f32x16 p = sp_load16_neon(s + i);
        SP_UNROLL
        for (int j = 0; j < 4; j++) {
            p.q[j] = sp_exp2_small_neon(vsubq_f32(p.q[j], max));
            sum.q[j] = vaddq_f32(sum.q[j], p.q[j]);
        }
        sp_store16_neon(s + i, p);
    }
    return vaddq_f32(vaddq_f32(sum.q[0], sum.q[2]), vaddq_f32(sum.q[1], sum.q[3]));
}

SP_TEMPLATE float32x4_t low_halves(float32x4_t a, float32x4_t b) {
    return vreinterpretq_f32_f64(vzip1q_f64(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)));
}

SP_TEMPLATE float32x4_t high_halves(float32x4_t a, float32x4_t b) {
    return vreinterpretq_f32_f64(vzip2q_f64(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)));
}

// The last two levels of four trees: 2 apart, 1 apart.
SP_TEMPLATE float32x4_t reduce_sum(const float32x4_t v[TILE]) {
    const float32x4_t ab = vaddq_f32(low_halves(v[0], v[1]), high_halves(v[0], v[1]));
    const float32x4_t cd = vaddq_f32(low_halves(v[2], v[3]), high_halves(v[2], v[3]));
    return vpaddq_f32(ab, cd);
}

// The maxima of four rows, one in each element, never -0.
SP_TEMPLATE float32x4_t reduce_max(const float32x4_t v[TILE]) {
    const float32x4_t m = vpmaxnmq_f32(vpmaxnmq_f32(v[0], v[1]), vpmaxnmq_f32(v[2], v[3]));
    return vaddq_f32(vmaxnmq_f32(m, vdupq_n_f32(-INFINITY)), vdupq_n_f32(0.0f));
}

// Up to four rows. The loops over rows stay loops: one row fills the machine.
static inline void tile(const sp_softmax_args *args, size_t first, size_t rows) {
    float32x4_t v[TILE] = {vdupq_n_f32(0.0f), vdupq_n_f32(0.0f), vdupq_n_f32(0.0f), vdupq_n_f32(0.0f)};
    const uint8_t *visible = args->visible + first;
    float *s = args->s + first * args->ld;
    SP_ROLLED
    for (size_t r = 0; r < rows; r++) {
        if (visible[r] < SP_KEYS) fill_from(s + r * args->ld, visible[r], -INFINITY);
        v[r] = lane_max(s + r * args->ld);
    }
    const float32x4_t max = reduce_max(v);
    sp_store_some_neon(args->max + first, max, rows);
    SP_ROLLED
    for (size_t r = 0; r < rows; r++) v[r] = exponentials(s + r * args->ld, vdupq_n_f32(args->max[first + r]));
    sp_store_some_neon(args->sum + first, reduce_sum(v), rows);
    // -infinity less a maximum of -infinity has become NaN, also out of sight.
    if (vminvq_f32(max) > -INFINITY) return;
    for (size_t r = 0; r < rows; r++)
        if (visible[r] < SP_KEYS && args->max[first + r] == -INFINITY) fill_from(s + r * args->ld, visible[r], 0.0f);
}

void sp_softmax_f32_f32_4x64_neon(const sp_softmax_args *args) {
    for (size_t r = 0; r < args->rows; r += TILE) tile(args, r, args->rows - r < TILE ? args->rows - r : TILE);
}
