// SPDX-License-Identifier: Apache-2.0
// What SME2 adds to the quantised products (gemm_q_sme.h):
//  * The look-up table ZT0 turns a line of nibbles into bytes: 16 values of 32 bits, of which bytes take the lowest.
//    The table holds what a nibble means, so that an offset costs nothing, nor would any other code of 16 values.
//  * The sums are vectors of ZA, four at a time: dot products and scales come out, FMLA adds their product in place.
#pragma once

#include "kernel/gemm/gemm_q_sme.h"

// What the sixteen nibbles of a format mean.
SP_INLINE void sp_table_load(sp_weight_kind kind) SP_STREAMING_TABLE {
    static const int32_t offset[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
    static const int32_t plain[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    if (kind != SP_WEIGHT_Q8S) svldr_zt(0, kind == SP_WEIGHT_Q4S ? offset : plain);
}

// A byte's two nibbles come out of the table side by side: the low ones are an even quad, the high ones an odd quad.
SP_INLINE svint8x2_t sp_two_quads(svuint8_t line) SP_STREAMING_TABLE {
    return svuzp_s8_x2(svluti4_lane_zt_s8_x2(0, line, 0));
}

SP_INLINE void sp_group_sme2(sp_weight_kind kind, const uint8_t *data, const int8_t *a, size_t quad, svbool_t tokens,
                             svbool_t rows) SP_STREAMING_TABLE {
    if (kind == SP_WEIGHT_Q8S) {
        sp_group_sme(kind, data, a, quad, tokens, rows);
        return;
    }
    for (size_t line = 0; line < 4; line++, data += SP_PANEL_LINE, a += 2 * quad) {
        const svint8x2_t w = sp_two_quads(svld1_u8(rows, data));
        SP_PRODUCT(svld1_s8(tokens, a), svget2_s8(w, 0));
        SP_PRODUCT(svld1_s8(tokens, a + quad), svget2_s8(w, 1));
    }
}

// Row r of tile t is vector 4 * r + t of ZA, and four vectors that are handled together are a quarter of ZA apart: rows
// r, r + lanes / 4, r + lanes / 2, r + lanes / 4 * 3.
SP_INLINE void sp_sum_sme2(size_t tokens) SP_STREAMING {
    const size_t end = 4 * sp_least_size(tokens, svcntw() / 4);
    __asm__ volatile("mov w8, #0\n"
                     "1:\n"
                     "mova {z0.d-z3.d}, za.d[w8, 0, vgx4]\n"
                     "mova {z4.d-z7.d}, za.d[w8, 2, vgx4]\n"
                     "scvtf {z0.s-z3.s}, {z0.s-z3.s}\n"
                     "fmla za.s[w8, 1, vgx4], {z0.s-z3.s}, {z4.s-z7.s}\n"
                     "add w8, w8, #4\n"
                     "cmp w8, %w[end]\n"
                     "b.lo 1b\n"
                     :
                     : [end] "r"(end)
                     : "memory", "cc", "x8", "z0", "z1", "z2", "z3", "z4", "z5", "z6", "z7");
}

SP_INLINE void sp_gemm_q_sme2(sp_weight_kind kind, const sp_gemm_q_args *args) SP_STREAMING_TABLE {
    sp_table_load(kind);
    sp_gemm_q_sme(kind, args, sp_group_sme2, sp_sum_sme2);
}
