// SPDX-License-Identifier: Apache-2.0
// The factors of four rows are computed at once, then row after row is scaled and added.
#include "kernel/declare.h"
#include "kernel/simd/neon.h"

// The factors of four rows: a of the state, b of the block.
typedef struct factors {
    float32x4_t a, b;
} factors;

// Updates m and l of the first `count` of four rows; the others hold zeros and are not stored.
SP_TEMPLATE factors row_factors(const sp_merge_args *args, size_t row, size_t count) {
    const float32x4_t m = sp_load_some_neon(args->m + row, count), mb = sp_load_some_neon(args->mb + row, count);
    const float32x4_t l = sp_load_some_neon(args->l + row, count), lb = sp_load_some_neon(args->lb + row, count);
    const float32x4_t max = vbslq_f32(vcgtq_f32(m, mb), m, mb);
    const factors f = {sp_exp2_small_neon(vsubq_f32(m, max)), sp_exp2_small_neon(vsubq_f32(mb, max))};
    sp_store_some_neon(args->m + row, max, count);
    sp_store_some_neon(args->l + row, vfmaq_f32(vmulq_f32(l, f.a), lb, f.b), count);
    return f;
}

SP_TEMPLATE float32x4_t merge(float32x4_t o, float32x4_t ob, float32x4_t a, float32x4_t b) {
    return vfmaq_f32(vmulq_f32(o, a), ob, b);
}

static inline void row_merge(float *o, const float *ob, size_t d, float32x4_t a, float32x4_t b) {
    size_t i = 0;
    for (; i + 16 <= d; i += 16) {
        sp_f32x16 v = sp_load16_neon(o + i);
        const sp_f32x16 later = sp_load16_neon(ob + i);
        SP_UNROLL
        for (int j = 0; j < 4; j++) v.q[j] = merge(v.q[j], later.q[j], a, b);
        sp_store16_neon(o + i, v);
    }
    for (; i < d; i += 4) vst1q_f32(o + i, merge(vld1q_f32(o + i), vld1q_f32(ob + i), a, b));
}

void sp_merge_f32_f32_f32_1x16_neon(const sp_merge_args *args) {
    for (size_t row = 0; row < args->rows; row += 4) {
        const size_t count = args->rows - row < 4 ? args->rows - row : 4;
        factors f = row_factors(args, row, count);
        for (size_t r = row; r < row + count; r++) {
            const float32x4_t a = vdupq_laneq_f32(f.a, 0), b = vdupq_laneq_f32(f.b, 0);
            row_merge(args->o + r * args->ldo, args->ob + r * args->ldb, args->d, a, b);
            f = (factors){vextq_f32(f.a, f.a, 1), vextq_f32(f.b, f.b, 1)};  // the next row's to the front
        }
    }
}
