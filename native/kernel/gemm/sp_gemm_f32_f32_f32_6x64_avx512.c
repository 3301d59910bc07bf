// SPDX-License-Identifier: Apache-2.0
// Float product on a tile of 6 x 64: 24 accumulators, 4 registers of b, a broadcast from memory. A step of k costs
// 4 loads and 24 fma, so the fma units are the bound.
#include <immintrin.h>

#include "kernel/gemm/gemm.h"

// acc + a * b with a broadcast from memory; inline assembly keeps the memory form and the accumulators in place.
SP_TEMPLATE __m512 fma_bcast(__m512 acc, __m512 b, const float *a) {
    __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(b), "m"(*a));
    return acc;
}

SP_TEMPLATE void tile(const sp_gemm_f_args *args, const int m, const int strips) {
    const float *b = args->b, *a = args->a;
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
    for (size_t k = 0; k < args->k; k++, a++, b += step) {
        __m512 v[4];
        SP_UNROLL
        for (int j = 0; j < strips; j++) v[j] = _mm512_loadu_ps(b + (size_t)j * strip);
        SP_UNROLL
        for (int i = 0; i < m; i++) {
            SP_UNROLL
            for (int j = 0; j < strips; j++) acc[i][j] = fma_bcast(acc[i][j], v[j], a + (size_t)i * lda);
        }
    }
    SP_UNROLL
    for (int i = 0; i < m; i++) {
        SP_UNROLL
        for (int j = 0; j < strips; j++) {
            _mm512_storeu_ps(args->y + (size_t)i * args->ldy + 16 * (size_t)j, acc[i][j]);
        }
    }
}

SP_TEMPLATE void rows(const sp_gemm_f_args *args, const int strips) {
    switch (args->m) {
        case 1: tile(args, 1, strips); break;
        case 2: tile(args, 2, strips); break;
        case 3: tile(args, 3, strips); break;
        case 4: tile(args, 4, strips); break;
        case 5: tile(args, 5, strips); break;
        default: tile(args, 6, strips); break;
    }
}

void sp_gemm_f32_f32_f32_6x64_avx512(const sp_gemm_f_args *args) {
    switch (args->n / 16) {
        case 1: rows(args, 1); break;
        case 2: rows(args, 2); break;
        case 3: rows(args, 3); break;
        default: rows(args, 4); break;
    }
}
