// SPDX-License-Identifier: Apache-2.0
// Quantised products with group scales on the matrix unit. A group of 32 is eight outer products into a tile of int32;
// then each element becomes float, is scaled and added: work on vectors, which a matrix unit does badly, between every
// eight products. So a plan leaves this class to cores; here it is as cheap as it gets.
//
// The scale of an element is a product of a token's and a row's, which is an outer product as well: one FMOPA from zero
// makes the scales of a whole tile. An fma from +0 is the rounded product but for the sign of a zero, which cannot
// show: a sum is never -0, for it starts at +0 and no step rounds to zero (scales are normal or exact float32 values
// times integers). The minima of affine formats are one more FMOPA, straight into the sums.
//
// Tiles: 0 dot products, 1 sums, 2 scales. Units of tokens x rows (simd/sme.h) are computed one after the other.
#pragma once

#include "kernel/gemm/gemm.h"
#include "kernel/simd/sme.h"

enum { SP_DOTS_AND_SCALES = 0x55 };  // as a mask of 64-bit tiles, which ZERO takes: tiles 0 and 2

// The eight products of a group. `quad` is the distance of neighbouring quads of a; predicates are of bytes.
typedef void sp_group_fn(sp_weight_kind kind, const uint8_t *data, const int8_t *a, size_t quad, svbool_t tokens,
                         svbool_t rows) SP_STREAMING_TABLE;

// sums += (float)dots * scales, for a unit's first `tokens` tokens.
typedef void sp_sum_fn(size_t tokens) SP_STREAMING;

// ---- SME1

#define SP_PRODUCT(a, w) svmopa_za32_s8_m(0, tokens, rows, a, w)

SP_INLINE void sp_group_sme(sp_weight_kind kind, const uint8_t *data, const int8_t *a, size_t quad, svbool_t tokens,
                            svbool_t rows) SP_STREAMING_TABLE {
    const svbool_t all = svptrue_b8();
    for (size_t line = 0; line < (kind == SP_WEIGHT_Q8S ? 8 : 4); line++, data += SP_PANEL_LINE, a += quad) {
        const svuint8_t w = svld1_u8(rows, data);
        if (kind == SP_WEIGHT_Q8S) {
            SP_PRODUCT(svld1_s8(tokens, a), svreinterpret_s8_u8(w));
            continue;
        }
        svint8_t even = svreinterpret_s8_u8(svand_n_u8_x(all, w, 15));
        svint8_t odd = svreinterpret_s8_u8(svlsr_n_u8_x(all, w, 4));
        if (kind == SP_WEIGHT_Q4S) even = svsub_n_s8_x(all, even, 8), odd = svsub_n_s8_x(all, odd, 8);
        SP_PRODUCT(svld1_s8(tokens, a), even);
        a += quad;
        SP_PRODUCT(svld1_s8(tokens, a), odd);
    }
}

// Sums of token t; four of them are in flight, for ZA is slow to read.
#define SP_DOT(t) svcvt_f32_s32_x(all, svread_hor_za32_s32_m(svundef_s32(), all, 0, t))
#define SP_SUM(tile, t) svread_hor_za32_f32_m(svundef_f32(), all, tile, t)
#define SP_SUMMED(t) svmla_f32_x(all, SP_SUM(1, t), SP_DOT(t), SP_SUM(2, t))

SP_INLINE void sp_sum_sme(size_t tokens) SP_STREAMING {
    const svbool_t all = svptrue_b32();
    uint32_t t = 0;
    for (; t + 4 <= tokens; t += 4) {
        const svfloat32_t a = SP_SUMMED(t), b = SP_SUMMED(t + 1), c = SP_SUMMED(t + 2), d = SP_SUMMED(t + 3);
        svwrite_hor_za32_f32_m(1, t, all, a);
        svwrite_hor_za32_f32_m(1, t + 1, all, b);
        svwrite_hor_za32_f32_m(1, t + 2, all, c);
        svwrite_hor_za32_f32_m(1, t + 3, all, d);
    }
    for (; t < tokens; t++) svwrite_hor_za32_f32_m(1, t, all, SP_SUMMED(t));
}

// ---- the walk

// Sixteen-bit floats widened into the lanes of `rows`.
SP_INLINE svfloat32_t sp_widened(svbool_t rows, const uint16_t *halves) SP_STREAMING {
    return svcvt_f32_f16_x(rows, svreinterpret_f16_u32(svld1uh_u32(rows, halves)));
}

SP_INLINE void sp_unit_sme(sp_weight_kind kind, const sp_gemm_q_args *args, size_t t, size_t r, sp_group_fn *group,
                           sp_sum_fn *sum) SP_STREAMING_TABLE {
    const size_t unit = sp_unit(), tokens = sp_least_size(unit, args->m - t), quad = 4 * args->width;
    const svbool_t in_tokens = svwhilelt_b32_u64(0, tokens), in_rows = svwhilelt_b32_u64(0, unit);
    const svbool_t token_bytes = svwhilelt_b8_u64(0, 4 * tokens), row_bytes = svwhilelt_b8_u64(0, 4 * unit);
    const int8_t *a = args->a + 4 * t;
    const float *ad = args->ad + t, *as = args->as + t;
    svzero_za();
    for (size_t g = 0; g < args->groups; g++) {
        const sp_weight_group w = sp_weight_group_at(kind, args->w, g);
        svzero_mask_za(SP_DOTS_AND_SCALES);
        group(kind, w.data + 4 * r, a, quad, token_bytes, row_bytes);
        svmopa_za32_f32_m(2, in_tokens, in_rows, svld1_f32(in_tokens, ad), sp_widened(in_rows, w.scales + r));
        sum(tokens);
        if (kind == SP_WEIGHT_Q4A)
            svmopa_za32_f32_m(1, in_tokens, in_rows, svld1_f32(in_tokens, as), sp_widened(in_rows, w.minima + r));
        a += quad * SP_GROUP / 4, ad += args->width, as += args->width;
    }
    for (size_t i = 0; i < tokens; i++) svst1_hor_za32(1, (uint32_t)i, in_rows, args->y + (t + i) * args->ldy + r);
}

SP_INLINE void sp_gemm_q_sme(sp_weight_kind kind, const sp_gemm_q_args *args, sp_group_fn *group,
                             sp_sum_fn *sum) SP_STREAMING_TABLE {
    const size_t unit = sp_unit();
    for (size_t t = 0; t < args->m; t += unit)
        for (size_t r = 0; r < 16; r += unit) sp_unit_sme(kind, args, t, r, group, sum);
}
