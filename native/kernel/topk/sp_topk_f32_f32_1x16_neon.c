// SPDX-License-Identifier: Apache-2.0
// The passes of kernel/topk/bound.h: sixteen groups side by side, one a lane; candidates found sixteen at a time.
#include "kernel/declare.h"
#include "kernel/simd/neon.h"
#include "kernel/topk/bound.h"

static inline size_t group_maxima(float *maxima, const float *x, size_t n, size_t depth) {
    size_t groups = 0;
    for (size_t i = 0; i + 16 * depth <= n; i += 16 * depth) {
        sp_f32x16 m = sp_load16_neon(x + i);
        for (size_t j = 1; j < depth; j++) {
            const sp_f32x16 v = sp_load16_neon(x + i + 16 * j);
            SP_UNROLL
            for (int l = 0; l < 4; l++) m.q[l] = vmaxq_f32(m.q[l], v.q[l]);
        }
        sp_store16_neon(maxima + groups, m);
        groups += 16;
    }
    return groups;
}

// A byte of all ones for each of sixteen values that reach the bound.
SP_TEMPLATE uint8x16_t reach(sp_f32x16 v, float32x4_t least) {
    const uint16x8_t low =
        vuzp1q_u16(vreinterpretq_u16_u32(vcgeq_f32(v.q[0], least)), vreinterpretq_u16_u32(vcgeq_f32(v.q[1], least)));
    const uint16x8_t high =
        vuzp1q_u16(vreinterpretq_u16_u32(vcgeq_f32(v.q[2], least)), vreinterpretq_u16_u32(vcgeq_f32(v.q[3], least)));
    return vuzp1q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high));
}

// Bit i of the result is byte i of a mask of bytes.
SP_TEMPLATE unsigned bits_of(uint8x16_t mask) {
    static const uint8_t place[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x8_t bit = vld1_u8(place);
    return vaddv_u8(vand_u8(vget_low_u8(mask), bit)) | (unsigned)vaddv_u8(vand_u8(vget_high_u8(mask), bit)) << 8;
}

static inline size_t collect(uint64_t *keys, const float *x, size_t n, float bound) {
    const float32x4_t least = vdupq_n_f32(bound);
    size_t count = 0, i = 0;
    for (; i + 16 <= n; i += 16) {
        const uint8x16_t mask = reach(sp_load16_neon(x + i), least);
        if (vmaxvq_u32(vreinterpretq_u32_u8(mask)) == 0) continue;  // nearly always
        count = sp_topk_append(keys, count, x, i, bits_of(mask));
        if (count > SP_TOPK_ROOM) return count;
    }
    unsigned hits = 0;
    for (size_t j = i; j < n; j++) hits |= (unsigned)(x[j] >= bound) << (j - i);
    return sp_topk_append(keys, count, x, i, hits);
}

void sp_topk_f32_f32_1x16_neon(int32_t *index, float *value, const float *x, size_t n, size_t k) {
    sp_topk_by(group_maxima, collect, index, value, x, n, k);
}
