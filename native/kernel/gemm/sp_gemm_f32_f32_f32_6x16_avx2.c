// SPDX-License-Identifier: Apache-2.0
// Float product on a tile of 6 x 16: 12 accumulators, 2 registers of b and one broadcast fill the 16 registers.
#include <immintrin.h>

#include "kernel/gemm/gemm.h"

SP_TEMPLATE void tile(const sp_gemm_f_args *args, const int m) {
    const float *b = args->b, *a = args->a;
    __m256 acc[6][2];
    SP_UNROLL
    for (int i = 0; i < m; i++) {
        const float *y = args->y + (size_t)i * args->ldy;
        acc[i][0] = args->accumulate ? _mm256_loadu_ps(y) : _mm256_setzero_ps();
        acc[i][1] = args->accumulate ? _mm256_loadu_ps(y + 8) : _mm256_setzero_ps();
    }
    for (size_t k = 0; k < args->k; k++, a++, b += args->step) {
        const __m256 b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + 8);
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

void sp_gemm_f32_f32_f32_6x16_avx2(const sp_gemm_f_args *args) {
    switch (args->m) {
        case 1: tile(args, 1); break;
        case 2: tile(args, 2); break;
        case 3: tile(args, 3); break;
        case 4: tile(args, 4); break;
        case 5: tile(args, 5); break;
        default: tile(args, 6); break;
    }
}
