// SPDX-License-Identifier: Apache-2.0
// Float product on a tile of 6 x 64: 24 accumulators, 4 registers of b, a broadcast from memory. A step of k costs
// 4 loads and 24 fma, so the fma units are the bound.
#pragma once

#include <immintrin.h>

#include "kernel/gemm/gemm.h"

// Sixteen columns of b as float32; float16 is widened exactly on the way.
SP_TEMPLATE __m512 sp_strip_load(const bool half, const void *b, size_t at) {
    if (half) return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)((const uint16_t *)b + at)));
    return _mm512_loadu_ps((const float *)b + at);
}

// acc + a * b with a broadcast from memory; inline assembly keeps the memory form and the accumulators in place.
SP_TEMPLATE __m512 sp_fma_bcast(__m512 acc, __m512 b, const float *a) {
    __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(b), "m"(*a));
    return acc;
}

SP_TEMPLATE void sp_gemm_f_tile(const bool half, const sp_gemm_f_args *args, const int m, const int strips) {
    const float *a = args->a;
    const size_t lda = args->lda, strip = args->strip, step = args->step;
    __m512 acc[6][4];
    SP_UNROLL
    for (int i = 0; i < m; i++) {
        SP_UNROLL
        for (int j = 0; j < strips; j++) {
            const float *y = args->y + (size_t)i * args->ldy + 16 * (size_t)j;
            acc[i][j] = args->accumulate ? _mm512_loadu_ps(y) : _mm512_setzero_ps();
        }
    }
    for (size_t k = 0; k < args->k; k++, a++) {
        __m512 v[4];
        SP_UNROLL
        for (int j = 0; j < strips; j++) v[j] = sp_strip_load(half, args->b, k * step + (size_t)j * strip);
        SP_UNROLL
        for (int i = 0; i < m; i++) {
            SP_UNROLL
            for (int j = 0; j < strips; j++) acc[i][j] = sp_fma_bcast(acc[i][j], v[j], a + (size_t)i * lda);
        }
    }
    SP_UNROLL
    for (int i = 0; i < m; i++) {
        SP_UNROLL
        for (int j = 0; j < strips; j++) _mm512_storeu_ps(args->y + (size_t)i * args->ldy + 16 * (size_t)j, acc[i][j]);
    }
}

SP_TEMPLATE void sp_gemm_f_rows(const bool half, const sp_gemm_f_args *args, const int strips) {
    switch (args->m) {
        case 1: sp_gemm_f_tile(half, args, 1, strips); break;
        case 2: sp_gemm_f_tile(half, args, 2, strips); break;
        case 3: sp_gemm_f_tile(half, args, 3, strips); break;
        case 4: sp_gemm_f_tile(half, args, 4, strips); break;
        case 5: sp_gemm_f_tile(half, args, 5, strips); break;
        default: sp_gemm_f_tile(half, args, 6, strips); break;
    }
}

SP_TEMPLATE void sp_gemm_f_avx512(const bool half, const sp_gemm_f_args *args) {
    switch (args->n / 16) {
        case 1: sp_gemm_f_rows(half, args, 1); break;
        case 2: sp_gemm_f_rows(half, args, 2); break;
        case 3: sp_gemm_f_rows(half, args, 3); break;
        default: sp_gemm_f_rows(half, args, 4); break;
    }
}
