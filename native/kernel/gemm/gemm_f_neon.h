// SPDX-License-Identifier: Apache-2.0
// Float product on NEON: 16 accumulators, which cover the latency of four multiply-add units, as 4 x 16, 2 x 32 or
// 1 x 64. Four k at a time: a row's four elements of a are one load and are used by lane, so that a step of k costs a
// 4 x 16 tile one load of a and two of b for 16 multiply-adds. float16 is widened on the way, exactly.
#pragma once

#include "kernel/gemm/gemm_neon.h"

// Columns 8 * i to 8 * i + 7 of a strip of b.
SP_TEMPLATE void sp_strip_load(const bool half, float32x4_t v[2], const void *b, size_t at) {
    if (half) {
        const float16x8_t h = vreinterpretq_f16_u16(vld1q_u16((const uint16_t *)b + at));
        v[0] = vcvt_f32_f16(vget_low_f16(h)), v[1] = vcvt_high_f32_f16(h);
    } else {
        v[0] = vld1q_f32((const float *)b + at), v[1] = vld1q_f32((const float *)b + at + 4);
    }
}

// acc += a[i][lane] * b of row k, for `m` rows and `strips` strips.
SP_TEMPLATE void sp_strip_fma(const bool half, const int m, const int strips, const sp_gemm_f_args *args, size_t k,
                              const float32x4_t a[4], const int lane, float32x4_t acc[4][16]) {
    SP_UNROLL
    for (int j = 0; j < 2 * strips; j++) {
        float32x4_t v[2];
        sp_strip_load(half, v, args->b, k * args->step + (size_t)(j / 2) * args->strip + (size_t)(j % 2) * 8);
        SP_UNROLL
        for (int i = 0; i < m; i++) {
            acc[i][2 * j] = sp_fma_lane_neon(acc[i][2 * j], v[0], a[i], lane);
            acc[i][2 * j + 1] = sp_fma_lane_neon(acc[i][2 * j + 1], v[1], a[i], lane);
        }
    }
}

// The tile of y at column `column` of y; `args->b` is at its strip.
SP_TEMPLATE void sp_gemm_f_tile(const bool half, const int m, const int strips, const sp_gemm_f_args *args) {
    const float *a = args->a;
    float32x4_t acc[4][16], v[4];
    SP_UNROLL
    for (int i = 0; i < m; i++) {
        SP_UNROLL
        for (int j = 0; j < 4 * strips; j++)
            acc[i][j] = args->accumulate ? vld1q_f32(args->y + (size_t)i * args->ldy + 4 * j) : vdupq_n_f32(0.0f);
    }
    size_t k = 0;
    for (; k + 4 <= args->k; k += 4) {
        SP_UNROLL
        for (int i = 0; i < m; i++) v[i] = vld1q_f32(a + (size_t)i * args->lda + k);
        SP_UNROLL
        for (int lane = 0; lane < 4; lane++) sp_strip_fma(half, m, strips, args, k + (size_t)lane, v, lane, acc);
    }
    for (; k < args->k; k++) {
        SP_UNROLL
        for (int i = 0; i < m; i++) v[i] = vld1q_dup_f32(a + (size_t)i * args->lda + k);
        sp_strip_fma(half, m, strips, args, k, v, 0, acc);
    }
    SP_UNROLL
    for (int i = 0; i < m; i++) {
        SP_UNROLL
        for (int j = 0; j < 4 * strips; j++) vst1q_f32(args->y + (size_t)i * args->ldy + 4 * j, acc[i][j]);
    }
}

// All tiles of m rows, `strips` at a time and then one by one.
SP_TEMPLATE void sp_gemm_f_rows(const bool half, const int m, const int strips, const sp_gemm_f_args *args) {
    sp_gemm_f_args tile = *args;
    const size_t element = half ? sizeof(uint16_t) : sizeof(float);
    for (size_t j = 0; j < args->n / 16;) {
        const bool together = j + (size_t)strips <= args->n / 16;
        tile.b = (const char *)args->b + j * args->strip * element;
        tile.y = args->y + 16 * j;
        if (together) sp_gemm_f_tile(half, m, strips, &tile);
        else sp_gemm_f_tile(half, m, 1, &tile);
        j += together ? (size_t)strips : 1;
    }
}

SP_TEMPLATE void sp_gemm_f_neon(const bool half, const sp_gemm_f_args *args) {
    switch (args->m) {
        case 1: sp_gemm_f_rows(half, 1, 4, args); break;
        case 2: sp_gemm_f_rows(half, 2, 2, args); break;
        case 3: sp_gemm_f_rows(half, 3, 1, args); break;
        default: sp_gemm_f_rows(half, 4, 1, args); break;
    }
}
