// SPDX-License-Identifier: Apache-2.0
// The product with one scale per row, on NEON: int32 accumulators over the whole k, a tile of tokens by eight rows.
// What a tier adds is `tile`; the panels' halves are walked and the results scaled here.
//
// Panels of activations are always 16 wide, so a tile computes absent tokens too; they are not stored.
#pragma once

#include "kernel/gemm/gemm_neon.h"

// Dot products of `tokens` by 8 rows: dot[t][0] of rows 0 to 3, dot[t][1] of rows 4 to 7. `a` and `w` are at the first
// ones' bytes; a line is 64 bytes.
typedef void (*sp_tile_r_fn)(int32x4_t dot[][2], const int8_t *a, const int8_t *w, size_t k);

SP_TEMPLATE void sp_store_r_neon(const sp_gemm_r_args *args, const int tokens, const int32x4_t dot[][2], size_t t0,
                                 size_t r0) {
    const float32x4_t low = vld1q_f32(args->wd + r0), high = vld1q_f32(args->wd + r0 + 4);
    SP_UNROLL
    for (int t = 0; t < tokens; t++) {
        if (t0 + (size_t)t >= args->m) break;
        const float ad = args->ad[t0 + (size_t)t];
        float *y = args->y + (t0 + (size_t)t) * args->ldy + r0;
        vst1q_f32(y, vmulq_f32(vcvtq_f32_s32(dot[t][0]), vmulq_n_f32(low, ad)));
        vst1q_f32(y + 4, vmulq_f32(vcvtq_f32_s32(dot[t][1]), vmulq_n_f32(high, ad)));
    }
}

SP_TEMPLATE void sp_gemm_r_neon(const sp_gemm_r_args *args, const int tokens, sp_tile_r_fn tile) {
    const size_t panel = 16 * args->k;
    for (size_t r = 0; r < args->n; r += 8) {
        const int8_t *w = args->w + r / 16 * panel + r % 16 * 4;
        for (size_t t = 0; t < args->m; t += (size_t)tokens) {
            int32x4_t dot[8][2];
            tile(dot, args->a + t / 16 * panel + t % 16 * 4, w, args->k);
            sp_store_r_neon(args, tokens, (const int32x4_t(*)[2])dot, t, r);
        }
    }
}
