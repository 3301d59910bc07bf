// SPDX-License-Identifier: Apache-2.0
// Float product on the matrix unit: FMOPA is a fused multiply-add for each element of a tile, so a tile that takes one
// outer product for each k, in order, is the fma chain of the definition.
//
// An outer product wants a column of a, the same k of 16 rows, but a lies in rows. So a block of 16 rows is first
// turned: rows go into ZA, columns come out of it, and the block becomes [k][16], like a strip of b. Then ZA is free
// for the products: four tiles, one block of a against four units of columns (simd/sme.h), one load of a for four
// products. Turning costs a fraction of that, and once for all columns.
//
// Here is the way for any vector length. At 512 bits SME1 has inner loops (gemm_f_sme.S) and SME2 a whole way of its
// own (gemm_f_sme2.S) in assembly.
#pragma once

#include "kernel/gemm/gemm.h"
#include "kernel/simd/sme.h"

enum {
    SP_TURNED_K = 256,  // k of a turned block, 16 KiB on the stack; longer chains continue through y
};

// Rows [0, rows) of a, at most a unit of them, columns [0, k): turned[k][16]. The other lanes may be anything.
typedef void sp_turn_fn(float *turned, const float *a, size_t lda, size_t rows, size_t k) SP_STREAMING;
SP_INLINE void sp_turn(float *turned, const float *a, size_t lda, size_t rows, size_t k) SP_STREAMING {
    const size_t unit = sp_unit();
    const svbool_t lanes = svwhilelt_b32_u64(0, unit);
    for (size_t at = 0; at < k; at += unit) {
        const size_t columns = sp_least_size(unit, k - at);
        const svbool_t valid = svwhilelt_b32_u64(0, columns);
        for (size_t r = 0; r < rows; r++) svld1_hor_za32(0, (uint32_t)r, valid, a + r * lda + at);
        for (size_t c = 0; c < columns; c++) svst1_ver_za32(0, (uint32_t)c, lanes, turned + (at + c) * 16);
    }
}

// What four tiles are made of: a turned block, and four units of columns of b, of which `unit` lanes count.
typedef struct sp_factors {
    const float *turned, *b[4];
    size_t step, k, unit;
} sp_factors;
typedef void sp_multiply_fn(const sp_factors *factors) SP_STREAMING;

SP_INLINE void sp_multiply(const sp_factors *factors) SP_STREAMING {
    const svbool_t lanes = svwhilelt_b32_u64(0, factors->unit);
    for (size_t i = 0, at = 0; i < factors->k; i++, at += factors->step) {
        const svfloat32_t a = svld1_f32(lanes, factors->turned + 16 * i);
        svmopa_za32_f32_m(0, lanes, lanes, a, svld1_f32(lanes, factors->b[0] + at));
        svmopa_za32_f32_m(1, lanes, lanes, a, svld1_f32(lanes, factors->b[1] + at));
        svmopa_za32_f32_m(2, lanes, lanes, a, svld1_f32(lanes, factors->b[2] + at));
        svmopa_za32_f32_m(3, lanes, lanes, a, svld1_f32(lanes, factors->b[3] + at));
    }
}

// Units of columns from column j on: where b has them, and which of their columns are there.
#define SP_COLUMN(i) sp_least_size(j + (i) * unit, args->n - unit)
#define SP_VALID(i) svwhilelt_b32_u64(j + (i) * unit, sp_least_size(j + ((i) + 1) * unit, args->n))

// Rows [t, t + rows) x four units of columns. The turned block's k starts at `first` of the whole.
SP_INLINE void sp_products(const sp_gemm_f_args *args, sp_factors factors, size_t t, size_t rows, size_t j,
                           size_t first, sp_multiply_fn *multiply) SP_STREAMING {
    const size_t unit = factors.unit;
    const svbool_t valid0 = SP_VALID(0), valid1 = SP_VALID(1), valid2 = SP_VALID(2), valid3 = SP_VALID(3);
    float *y = args->y + t * args->ldy + j;
    for (size_t i = 0; i < 4; i++)
        factors.b[i] =
            (const float *)args->b + first * args->step + SP_COLUMN(i) / 16 * args->strip + SP_COLUMN(i) % 16;
    svzero_za();
    if (args->accumulate || first > 0) {
        for (size_t r = 0; r < rows; r++) {
            svld1_hor_za32(0, (uint32_t)r, valid0, y + r * args->ldy);
            svld1_hor_za32(1, (uint32_t)r, valid1, y + r * args->ldy + unit);
            svld1_hor_za32(2, (uint32_t)r, valid2, y + r * args->ldy + 2 * unit);
            svld1_hor_za32(3, (uint32_t)r, valid3, y + r * args->ldy + 3 * unit);
        }
    }
    multiply(&factors);
    for (size_t r = 0; r < rows; r++, y += args->ldy) {
        svst1_hor_za32(0, (uint32_t)r, valid0, y);
        svst1_hor_za32(1, (uint32_t)r, valid1, y + unit);
        svst1_hor_za32(2, (uint32_t)r, valid2, y + 2 * unit);
        svst1_hor_za32(3, (uint32_t)r, valid3, y + 3 * unit);
    }
}

SP_INLINE void sp_gemm_f_sme(const sp_gemm_f_args *args, sp_turn_fn *turn, sp_multiply_fn *multiply) SP_STREAMING {
    _Alignas(SP_PANEL_LINE) float turned[SP_TURNED_K * 16];
    const size_t unit = sp_unit();
    for (size_t t = 0; t < args->m; t += unit) {
        const size_t rows = sp_least_size(unit, args->m - t);
        for (size_t first = 0; first < args->k; first += SP_TURNED_K) {
            const size_t k = sp_least_size(SP_TURNED_K, args->k - first);
            const sp_factors factors = {.turned = turned, .step = args->step, .k = k, .unit = unit};
            turn(turned, args->a + t * args->lda + first, args->lda, rows, k);
            for (size_t j = 0; j < args->n; j += 4 * unit) sp_products(args, factors, t, rows, j, first, multiply);
        }
    }
}
