// SPDX-License-Identifier: Apache-2.0
// See gemm_r_sme.h. Besides, four rows of a tile leave ZA at a time, and a single token, which would fill one row of an
// outer product of sixteen, goes by SDOT into ZA: four panels' lines in one instruction.
#include "kernel/gemm/gemm_r_sme.h"

// gemm_r_sme2.S
sp_product_fn sp_gemm_r_2x2_sme2, sp_gemm_r_1x4_sme2, sp_gemm_r_token_sme2;

// Two vectors of a row, scaled, for token `lane` of four.
#define STORE_TWO(lane)                                                                                 \
    do {                                                                                                \
        const svfloat32_t low = svmul_f32_x(all, svget4_f32(f0, lane), svmul_lane_f32(wd0, ad, lane));  \
        const svfloat32_t high = svmul_f32_x(all, svget4_f32(f1, lane), svmul_lane_f32(wd1, ad, lane)); \
        svst1_f32_x2(rows, y, svcreate2_f32(low, high));                                                \
        y += pair->ldy;                                                                                 \
    } while (0)

#define STORE_PAIR(first)                                                             \
    do {                                                                              \
        size_t t = 0;                                                                 \
        for (; t + 4 <= pair->tokens; t += 4) {                                       \
            const svint32x4_t i0 = svread_hor_za32_s32_vg4(first, (uint32_t)t);       \
            const svint32x4_t i1 = svread_hor_za32_s32_vg4((first) + 1, (uint32_t)t); \
            const svfloat32x4_t f0 = svcvt_f32_s32_x4(i0), f1 = svcvt_f32_s32_x4(i1); \
            const svfloat32_t ad = svld1rq_f32(all, pair->ad + t);                    \
            STORE_TWO(0);                                                             \
            STORE_TWO(1);                                                             \
            STORE_TWO(2);                                                             \
            STORE_TWO(3);                                                             \
        }                                                                             \
        SP_STORE_LAST(first, t)                                                       \
    } while (0)

SP_INLINE void store_pair(const sp_tile_pair *pair, int index) SP_STREAMING {
    const size_t unit = 16;
    const svbool_t all = svptrue_b32(), rows0 = all, rows1 = svwhilelt_b32_u64(unit, pair->rows);
    const svcount_t rows = svwhilelt_c32_u64(0, pair->rows, 2);
    const svfloat32x2_t wd = svld1_f32_x2(rows, pair->wd);
    const svfloat32_t wd0 = svget2_f32(wd, 0), wd1 = svget2_f32(wd, 1);
    const svint32_t none = svundef_s32();
    float *y = pair->y;
    if (index == 0) STORE_PAIR(0);
    else STORE_PAIR(2);
}

// ---- one token

// Four units of rows against the token, at any vector length, into four vectors of ZA.
SP_INLINE void token_any(const sp_units *units) SP_STREAMING {
    const svbool_t line = svwhilelt_b8_u64(0, SP_PANEL_LINE);
    svzero_za();
    for (size_t i = 0; i < 16 * units->k; i += SP_PANEL_LINE) {
        int32_t four;
        __builtin_memcpy(&four, units->a[0] + i, sizeof four);
        const svint8x4_t w = svcreate4_s8(SP_LOAD_LINE(units->w[0]), SP_LOAD_LINE(units->w[1]),
                                          SP_LOAD_LINE(units->w[2]), SP_LOAD_LINE(units->w[3]));
        svdot_single_za32_s8_vg1x4(0, w, svreinterpret_s8_s32(svdup_n_s32(four)));
    }
}

#define STORE_UNIT(j)                                                                                    \
    do {                                                                                                 \
        const svbool_t rows = svwhilelt_b32_u64(r + (j) * unit, sp_least_size(n, r + ((j) + 1) * unit)); \
        const svfloat32_t scale = svmul_f32_x(all, svld1_f32(rows, args->wd + r + (j) * unit), ad);      \
        svst1_f32(rows, args->y + r + (j) * unit, svmul_f32_x(all, svget4_f32(dots, j), scale));         \
    } while (0)

SP_INLINE void one_token(const sp_gemm_r_args *args, sp_product_fn *product) SP_STREAMING {
    const size_t unit = sp_unit(), n = args->n;
    const svbool_t all = svptrue_b32();
    const svfloat32_t ad = svdup_n_f32(args->ad[0]);
    for (size_t r = 0; r < n; r += 4 * unit) {
        sp_units at = {.a = {args->a}, .k = args->k};
        for (size_t j = 0; j < 4; j++) at.w[j] = sp_unit_at(args->w, at.k, sp_least_size(r + j * unit, n - unit));
        product(&at);
        const svfloat32x4_t dots = svcvt_f32_s32_x4(svread_za32_s32_vg1x4(0));
        STORE_UNIT(0);
        STORE_UNIT(1);
        STORE_UNIT(2);
        STORE_UNIT(3);
    }
}

SP_BODY(sp_gemm_f32_q8r_q8r_32x32_sme2, sp_gemm_r_args, SP_STREAMING) {
    if (sp_line_is_vector())
        if (args->m == 1) one_token(args, sp_gemm_r_token_sme2);
        else sp_gemm_r_sme(args, sp_gemm_r_2x2_sme2, sp_gemm_r_1x4_sme2, store_pair);
    else if (args->m == 1) one_token(args, token_any);
    else sp_gemm_r_sme(args, sp_product_2x2, sp_product_1x4, sp_store_pair);
}
