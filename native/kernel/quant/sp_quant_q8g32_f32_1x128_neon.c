// SPDX-License-Identifier: Apache-2.0
// Four groups of 32 at a time, so that maxima, divisions and sums of four groups share their instructions; and two
// passes over a block of sixteen groups, so that an in-order core divides for all of them before it needs the first.
//
// A row whose groups are no multiple of four ends with a tile that overlaps the one before: it writes the same values.
#include "kernel/declare.h"
#include "kernel/quant/bytes_neon.h"
#include "kernel/quant/group.h"

enum { BLOCK = 16 };  // groups

typedef struct factors {
    float inverse[BLOCK], scale[BLOCK];
    uint32_t odd[BLOCK];  // all ones: the group is out of the ordinary range
} factors;

// max |x| of the group at x, as bit patterns, still spread over four lanes.
SP_TEMPLATE uint32x4_t group_max(const float *x) {
    uint32x4_t m[4];
    SP_UNROLL
    for (int i = 0; i < 4; i++)
        m[i] = vmaxq_u32(sp_size_neon(vld1q_f32(x + 8 * i)), sp_size_neon(vld1q_f32(x + 8 * i + 4)));
    return vmaxq_u32(vmaxq_u32(m[0], m[1]), vmaxq_u32(m[2], m[3]));
}

static inline void four_factors(factors *f, size_t i, const float *x) {
    const uint32x4_t ab = vpmaxq_u32(group_max(x), group_max(x + 32));
    const uint32x4_t cd = vpmaxq_u32(group_max(x + 64), group_max(x + 96));
    const uint32x4_t amax = vpmaxq_u32(ab, cd);
    const uint32x4_t above = vsubq_u32(amax, vdupq_n_u32(SP_QUANT_TINY));
    const float32x4_t size = vreinterpretq_f32_u32(amax), most = vdupq_n_f32(127.0f);
    vst1q_f32(f->inverse + i, vdivq_f32(most, size));
    vst1q_f32(f->scale + i, vdivq_f32(size, most));
    vst1q_u32(f->odd + i, vcgeq_u32(above, vdupq_n_u32(SP_QUANT_HUGE - SP_QUANT_TINY)));
}

SP_TEMPLATE int8x16_t half_bytes(const float *x, float inverse) {
    uint16x8_t v[4];
    SP_UNROLL
    for (int i = 0; i < 4; i++) v[i] = sp_rint_neon(vmulq_n_f32(vld1q_f32(x + 4 * i), inverse));
    return sp_low_bytes_neon(v);
}

// Stores the bytes of one group; returns their sum, spread over eight lanes.
SP_TEMPLATE int16x8_t one_group(int8_t *q, size_t quad, const float *x, float inverse) {
    const sp_bytes32 v = {half_bytes(x, inverse), half_bytes(x + 16, inverse)};
    q = sp_store_quads_neon(q, quad, v.low);
    sp_store_quads_neon(q, quad, v.high);
    return sp_sum_bytes_neon(v);
}

// Scales, negated sums and scaled sums of groups g..g+3.
SP_TEMPLATE void store_facts(const sp_quant_args *args, size_t g, float32x4_t scale, int32x4_t sum) {
    const int32x4_t neg = vnegq_s32(sum);
    const float32x4_t scaled = vmulq_f32(scale, vcvtq_f32_s32(sum));
    const size_t step = args->width;
    float *d = args->d + g * step, *s = args->sum + g * step;
    int32_t *n = args->neg + g * step;
    vst1q_lane_f32(d, scale, 0), vst1q_lane_f32(d + step, scale, 1);
    vst1q_lane_f32(d + 2 * step, scale, 2), vst1q_lane_f32(d + 3 * step, scale, 3);
    vst1q_lane_s32(n, neg, 0), vst1q_lane_s32(n + step, neg, 1);
    vst1q_lane_s32(n + 2 * step, neg, 2), vst1q_lane_s32(n + 3 * step, neg, 3);
    vst1q_lane_f32(s, scaled, 0), vst1q_lane_f32(s + step, scaled, 1);
    vst1q_lane_f32(s + 2 * step, scaled, 2), vst1q_lane_f32(s + 3 * step, scaled, 3);
}

// Groups g..g+3, whose factors are at i.
static inline void four_groups(const sp_quant_args *args, size_t g, const factors *f, size_t i) {
    if (vmaxvq_u32(vld1q_u32(f->odd + i)) != 0) {
        for (size_t j = 0; j < 4; j++) sp_quant_group(args, g + j);
        return;
    }
    const size_t quad = 4 * args->width;
    int16x8_t part[4];
    for (size_t j = 0; j < 4; j++) {
        int8_t *q = args->q + (g + j) * SP_GROUP * args->width;
        part[j] = one_group(q, quad, args->x + (g + j) * SP_GROUP, f->inverse[i + j]);
    }
    const int16x8_t sums = vpaddq_s16(vpaddq_s16(part[0], part[1]), vpaddq_s16(part[2], part[3]));
    store_facts(args, g, vld1q_f32(f->scale + i), vpaddlq_s16(sums));
}

// Groups g..g+n-1; n is 4, 8, 12 or 16.
static void block(const sp_quant_args *args, size_t g, size_t n) {
    factors f;
    for (size_t i = 0; i < n; i += 4) four_factors(&f, i, args->x + (g + i) * SP_GROUP);
    for (size_t i = 0; i < n; i += 4) four_groups(args, g + i, &f, i);
}

void sp_quant_q8g32_f32_1x128_neon(const sp_quant_args *args) {
    const size_t groups = args->n / SP_GROUP;
    if (groups < 4) {
        for (size_t g = 0; g < groups; g++) sp_quant_group(args, g);
        return;
    }
    const size_t whole = groups / 4 * 4;
    for (size_t g = 0; g < whole; g += BLOCK) block(args, g, whole - g < BLOCK ? whole - g : BLOCK);
    if (whole < groups) block(args, groups - 4, 4);
}
