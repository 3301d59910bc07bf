// SPDX-License-Identifier: Apache-2.0
// Float product on a tile of 6 x 16: 12 accumulators, 2 registers of b and one broadcast fill the 16 registers.
#pragma once

#include <immintrin.h>

#include "kernel/gemm/gemm.h"

// Eight columns of b as float32; float16 is widened exactly on the way.
SP_TEMPLATE __m256 sp_strip_load(const bool half, const void *b, size_t at) {
    if (half) return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)((const uint16_t *)b + at)));
    return _mm256_loadu_ps((const float *)b + at);
}

SP_TEMPLATE void sp_gemm_f_tile(const bool half, const sp_gemm_f_args *args, const int m) {
    const float *a = args->a;
    __m256 acc[6][2];
    SP_UNROLL
    for (int i = 0; i < m; i++) {
        const float *y = args->y + (size_t)i * args->ldy;
        acc[i][0] = args->accumulate ? _mm256_loadu_ps(y) : _mm256_setzero_ps();
        acc[i][1] = args->accumulate ? _mm256_loadu_ps(y + 8) : _mm256_setzero_ps();
    }
    for (size_t k = 0; k < args->k; k++, a++) {
        const __m256 b0 = sp_strip_load(half, args->b, k * args->step);
        const __m256 b1 = sp_strip_load(half, args->b, k * args->step + 8);
        SP_UNROLL
        for (int i = 0; i < m; i++) {
            const __m256 v = _mm256_broadcast_ss(a + (size_t)i * args->lda);
            acc[i][0] = _mm256_fmadd_ps(v, b0, acc[i][0]);
            acc[i][1] = _mm256_fmadd_ps(v, b1, acc[i][1]);
        }
    }
    SP_UNROLL
    for (int i = 0; i < m; i++) {
        _mm256_storeu_ps(args->y + (size_t)i * args->ldy, acc[i][0]);
        _mm256_storeu_ps(args->y + (size_t)i * args->ldy + 8, acc[i][1]);
    }
}

SP_TEMPLATE void sp_gemm_f_avx2(const bool half, const sp_gemm_f_args *args) {
    switch (args->m) {
        case 1: sp_gemm_f_tile(half, args, 1); break;
        case 2: sp_gemm_f_tile(half, args, 2); break;
        case 3: sp_gemm_f_tile(half, args, 3); break;
        case 4: sp_gemm_f_tile(half, args, 4); break;
        case 5: sp_gemm_f_tile(half, args, 5); break;
        default: sp_gemm_f_tile(half, args, 6); break;
    }
}
