// SPDX-License-Identifier: Apache-2.0
// Int8 product with one scale per row on the matrix unit. A line of an activation panel and a line of a weight panel
// are the two operands of an outer product as they lie in memory: a step of k is loads and SMOPA, nothing else, and
// the scales come once, at the end.
//
// Four tiles of ZA are in flight. They cover 2 x 2 units (simd/sme.h) of tokens x rows, two loads for two products;
// the last tokens, if one unit of them is left, go by 1 x 4. Where rows do not fill the tiles, the last unit is
// computed again in place of the missing ones and not stored: weight panels come in even numbers.
//
// Here is the walk over the tiles, and the loops for any vector length. A tier adds its loops for 512 bits, in assembly
// (gemm_r_sme.S, gemm_r_sme2.S).
#pragma once

#include "kernel/gemm/gemm.h"
#include "kernel/simd/sme.h"

// The operands of four tiles: units of tokens and rows, at their first line. Lines of a panel are 64 bytes apart.
typedef struct sp_units {
    const int8_t *a[2], *w[4];
    size_t k;
} sp_units;

// A product of all k into the four tiles, tile 2 * i + j of a[i] x w[j] or tile j of a[0] x w[j].
typedef void sp_product_fn(const sp_units *units) SP_STREAMING;

// One pair of tiles, side by side along the rows, on its way out.
typedef struct sp_tile_pair {
    size_t tokens, rows;  // valid ones: tokens of one unit, rows of one unit or two
    float *y;
    size_t ldy;
    const float *wd, *ad;
} sp_tile_pair;
typedef void sp_store_fn(const sp_tile_pair *pair, int index) SP_STREAMING;

SP_INLINE const int8_t *sp_unit_at(const int8_t *panels, size_t k, size_t at) __arm_streaming_compatible {
    return panels + at / 16 * 16 * k + at % 16 * 4;
}

// ---- any vector length

#define SP_LOAD_LINE(at) svld1_s8(line, (at) + i)

SP_INLINE void sp_product_2x2(const sp_units *units) SP_STREAMING {
    const svbool_t line = svwhilelt_b8_u64(0, SP_PANEL_LINE);
    svzero_za();
    for (size_t i = 0; i < 16 * units->k; i += SP_PANEL_LINE) {
        const svint8_t a0 = SP_LOAD_LINE(units->a[0]), a1 = SP_LOAD_LINE(units->a[1]);
        const svint8_t w0 = SP_LOAD_LINE(units->w[0]), w1 = SP_LOAD_LINE(units->w[1]);
        svmopa_za32_s8_m(0, line, line, a0, w0);
        svmopa_za32_s8_m(1, line, line, a0, w1);
        svmopa_za32_s8_m(2, line, line, a1, w0);
        svmopa_za32_s8_m(3, line, line, a1, w1);
    }
}

SP_INLINE void sp_product_1x4(const sp_units *units) SP_STREAMING {
    const svbool_t line = svwhilelt_b8_u64(0, SP_PANEL_LINE);
    svzero_za();
    for (size_t i = 0; i < 16 * units->k; i += SP_PANEL_LINE) {
        const svint8_t a = SP_LOAD_LINE(units->a[0]);
        svmopa_za32_s8_m(0, line, line, a, SP_LOAD_LINE(units->w[0]));
        svmopa_za32_s8_m(1, line, line, a, SP_LOAD_LINE(units->w[1]));
        svmopa_za32_s8_m(2, line, line, a, SP_LOAD_LINE(units->w[2]));
        svmopa_za32_s8_m(3, line, line, a, SP_LOAD_LINE(units->w[3]));
    }
}

// (float)dot * (wd * ad), ad being lane `lane` of four tokens' scales.
#define SP_SCALED(dot, wd, lane) svmul_f32_x(all, svcvt_f32_s32_x(all, dot), svmul_lane_f32(wd, ad, lane))

#define SP_DOTS(tile, row) svread_hor_za32_s32_m(none, all, tile, (uint32_t)(row))

#define SP_STORE_ROW(dot0, dot1, lane)                          \
    do {                                                        \
        svst1_f32(rows0, y, SP_SCALED(dot0, wd0, lane));        \
        svst1_f32(rows1, y + unit, SP_SCALED(dot1, wd1, lane)); \
        y += pair->ldy;                                         \
    } while (0)

// The tokens beyond a multiple of four, one by one.
#define SP_STORE_LAST(first, t)                                      \
    for (; t < pair->tokens; t++) {                                  \
        const svfloat32_t ad = svdup_n_f32(pair->ad[t]);             \
        SP_STORE_ROW(SP_DOTS(first, t), SP_DOTS((first) + 1, t), 0); \
    }

// Four tokens share one load of scales, and their reads of ZA, which take long, stand together.
#define SP_STORE_PAIR(first)                                                              \
    do {                                                                                  \
        size_t t = 0;                                                                     \
        for (; t + 4 <= pair->tokens; t += 4) {                                           \
            const svint32_t a0 = SP_DOTS(first, t), a1 = SP_DOTS((first) + 1, t);         \
            const svint32_t b0 = SP_DOTS(first, t + 1), b1 = SP_DOTS((first) + 1, t + 1); \
            const svint32_t c0 = SP_DOTS(first, t + 2), c1 = SP_DOTS((first) + 1, t + 2); \
            const svint32_t d0 = SP_DOTS(first, t + 3), d1 = SP_DOTS((first) + 1, t + 3); \
            const svfloat32_t ad = svld1rq_f32(all, pair->ad + t);                        \
            SP_STORE_ROW(a0, a1, 0);                                                      \
            SP_STORE_ROW(b0, b1, 1);                                                      \
            SP_STORE_ROW(c0, c1, 2);                                                      \
            SP_STORE_ROW(d0, d1, 3);                                                      \
        }                                                                                 \
        SP_STORE_LAST(first, t)                                                           \
    } while (0)

SP_INLINE void sp_store_pair(const sp_tile_pair *pair, int index) SP_STREAMING {
    const size_t unit = sp_unit();
    const svbool_t all = svptrue_b32(), rows0 = svwhilelt_b32_u64(0, unit);
    const svbool_t rows1 = svwhilelt_b32_u64(unit, pair->rows);
    const svfloat32_t wd0 = svld1_f32(rows0, pair->wd), wd1 = svld1_f32(rows1, pair->wd + unit);
    const svint32_t none = svundef_s32();
    float *y = pair->y;
    if (index == 0) SP_STORE_PAIR(0);
    else SP_STORE_PAIR(2);
}

// ---- the walk

SP_INLINE void sp_gemm_r_sme(const sp_gemm_r_args *args, sp_product_fn *product_2x2, sp_product_fn *product_1x4,
                             sp_store_fn *store) SP_STREAMING {
    const size_t unit = sp_unit(), k = args->k, last = args->n - unit;
    for (size_t t = 0; t < args->m; t += 2 * unit) {
        const size_t tokens = sp_least_size(2 * unit, args->m - t), units = tokens > unit ? 2 : 4;
        for (size_t r = 0; r < args->n; r += units * unit) {
            sp_units at = {.k = k};
            for (size_t i = 0; i < 2; i++) at.a[i] = sp_unit_at(args->a, k, tokens > unit ? t + i * unit : t);
            for (size_t j = 0; j < 4; j++) at.w[j] = sp_unit_at(args->w, k, sp_least_size(r + j * unit, last));
            if (tokens > unit) product_2x2(&at);
            else product_1x4(&at);
            for (int i = 0; i < 2; i++) {
                const size_t down = units == 2 ? (size_t)i * unit : 0, right = units == 2 ? 0 : (size_t)i * 2 * unit;
                if (r + right >= args->n) break;
                const sp_tile_pair pair = {.tokens = sp_least_size(unit, tokens - down),
                                           .rows = sp_least_size(2 * unit, args->n - r - right),
                                           .y = args->y + (t + down) * args->ldy + r + right,
                                           .ldy = args->ldy,
                                           .wd = args->wd + r + right,
                                           .ad = args->ad + t + down};
                store(&pair, i);
            }
        }
    }
}
