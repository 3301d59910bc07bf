// SPDX-License-Identifier: Apache-2.0
// See gemm_r_sme.h. The loops for 512 bits: one load brings four lines of a panel, four steps of k, so that 2 x 2 tiles
// take 4 loads for 16 SMOPA. Eight steps are written out (k is a multiple of them); two sets of pointers and one
// counter that is also everyone's offset leave two more instructions to the loop.
//
// A single token would fill one row of an outer product of sixteen. It goes by SDOT into ZA instead: four panels'
// lines against one token's four bytes in one instruction. Panels are loaded into every fourth register, so that
// equal lines of four panels become neighbours.
#include "kernel/gemm/gemm_r_sme.h"

#define LOAD4(z0, z3, pointer) "ld1b {z" #z0 ".b-z" #z3 ".b}, pn8/z, [%[" #pointer "], %[i]]\n"
#define MOPA(tile, za, zw) "smopa za" #tile ".s, p0/m, p0/m, z" #za ".b, z" #zw ".b\n"
#define STEP_2X2(za, zb, zv, zw) MOPA(0, za, zv) MOPA(1, za, zw) MOPA(2, zb, zv) MOPA(3, zb, zw)
#define STEP_1X4(za, zt, zu, zv, zw) MOPA(0, za, zt) MOPA(1, za, zu) MOPA(2, za, zv) MOPA(3, za, zw)

// Pointers to the end of an operand and, four lines on, for the second half of a turn.
#define ENDS(name, at) [name] "r"((at) + bytes), [name##n] "r"((at) + bytes + 4 * SP_PANEL_LINE)

SP_INLINE void product_2x2(const sp_units *units) SP_STREAMING {
    const size_t bytes = 16 * units->k;
    ptrdiff_t i = -(ptrdiff_t)bytes;
    __asm__ volatile("ptrue p0.b\n"
                     "ptrue pn8.b\n"
                     "zero {za}\n"
                     "1:\n" LOAD4(0, 3, a0) LOAD4(16, 19, w0) LOAD4(20, 23, w1) LOAD4(4, 7, a1) STEP_2X2(0, 4, 16, 20)
                         STEP_2X2(1, 5, 17, 21) STEP_2X2(2, 6, 18, 22) STEP_2X2(3, 7, 19, 23) LOAD4(24, 27, a0n)
                             LOAD4(16, 19, w0n) LOAD4(20, 23, w1n) LOAD4(28, 31, a1n) STEP_2X2(24, 28, 16, 20)
                                 STEP_2X2(25, 29, 17, 21) STEP_2X2(26, 30, 18, 22)
                                     STEP_2X2(27, 31, 19, 23) "adds %[i], %[i], #512\n"
                                                              "b.ne 1b\n"
                     : [i] "+r"(i)
                     : ENDS(a0, units->a[0]), ENDS(a1, units->a[1]), ENDS(w0, units->w[0]), ENDS(w1, units->w[1])
                     : "memory", "cc", "p0", "p8", "z0", "z1", "z2", "z3", "z4", "z5", "z6", "z7", "z16", "z17", "z18",
                       "z19", "z20", "z21", "z22", "z23", "z24", "z25", "z26", "z27", "z28", "z29", "z30", "z31");
}

SP_INLINE void product_1x4(const sp_units *units) SP_STREAMING {
    const size_t bytes = 16 * units->k;
    ptrdiff_t i = -(ptrdiff_t)bytes;
    __asm__ volatile("ptrue p0.b\n"
                     "ptrue pn8.b\n"
                     "zero {za}\n"
                     "1:\n" LOAD4(0, 3, a0) LOAD4(16, 19, w0) LOAD4(20, 23, w1) LOAD4(24, 27, w2) LOAD4(28, 31, w3)
                         STEP_1X4(0, 16, 20, 24, 28) STEP_1X4(1, 17, 21, 25, 29) STEP_1X4(2, 18, 22, 26, 30)
                             STEP_1X4(3, 19, 23, 27, 31) LOAD4(4, 7, a0n) LOAD4(16, 19, w0n) LOAD4(20, 23, w1n)
                                 LOAD4(24, 27, w2n) LOAD4(28, 31, w3n) STEP_1X4(4, 16, 20, 24, 28)
                                     STEP_1X4(5, 17, 21, 25, 29) STEP_1X4(6, 18, 22, 26, 30)
                                         STEP_1X4(7, 19, 23, 27, 31) "adds %[i], %[i], #512\n"
                                                                     "b.ne 1b\n"
                     : [i] "+r"(i)
                     : ENDS(a0, units->a[0]), ENDS(w0, units->w[0]), ENDS(w1, units->w[1]), ENDS(w2, units->w[2]),
                       ENDS(w3, units->w[3])
                     : "memory", "cc", "p0", "p8", "z0", "z1", "z2", "z3", "z4", "z5", "z6", "z7", "z16", "z17", "z18",
                       "z19", "z20", "z21", "z22", "z23", "z24", "z25", "z26", "z27", "z28", "z29", "z30", "z31");
}

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

// Four units of rows against the token, at 512 bits. Each of four steps has accumulators of its own, for SDOT takes
// longer than until its turn comes again.
#define TOKEN(step) "ld1rw {z" #step ".s}, p0/z, [%[a], #64 * " #step "]\n"
#define DOT(step, z0, z3) "sdot za.s[w8, " #step ", vgx4], {z" #z0 ".b-z" #z3 ".b}, z" #step ".b\n"

SP_INLINE void token_4(const sp_units *units) SP_STREAMING {
    const size_t bytes = 16 * units->k;
    const int8_t *a = units->a[0];
    ptrdiff_t i = -(ptrdiff_t)bytes;
    __asm__ volatile("ptrue p0.b\n"
                     "ptrue pn8.b\n"
                     "zero {za}\n"
                     "mov w8, #0\n"
                     "1:\n"
                     "ld1b {z16.b, z20.b, z24.b, z28.b}, pn8/z, [%[w0], %[i]]\n"
                     "ld1b {z17.b, z21.b, z25.b, z29.b}, pn8/z, [%[w1], %[i]]\n"
                     "ld1b {z18.b, z22.b, z26.b, z30.b}, pn8/z, [%[w2], %[i]]\n"
                     "ld1b {z19.b, z23.b, z27.b, z31.b}, pn8/z, [%[w3], %[i]]\n" TOKEN(0) TOKEN(1) TOKEN(2) TOKEN(3)
                         DOT(0, 16, 19) DOT(1, 20, 23) DOT(2, 24, 27)
                             DOT(3, 28, 31) "add %[a], %[a], #256\n"
                                            "adds %[i], %[i], #256\n"
                                            "b.ne 1b\n"
                                            // The sums of the later steps are added to the first one's.
                                            "mova {z16.d-z19.d}, za.d[w8, 1, vgx4]\n"
                                            "mova {z20.d-z23.d}, za.d[w8, 2, vgx4]\n"
                                            "mova {z24.d-z27.d}, za.d[w8, 3, vgx4]\n"
                                            "add za.s[w8, 0, vgx4], {z16.s-z19.s}\n"
                                            "add za.s[w8, 0, vgx4], {z20.s-z23.s}\n"
                                            "add za.s[w8, 0, vgx4], {z24.s-z27.s}\n"
                     : [i] "+r"(i), [a] "+r"(a)
                     : [w0] "r"(units->w[0] + bytes), [w1] "r"(units->w[1] + bytes), [w2] "r"(units->w[2] + bytes),
                       [w3] "r"(units->w[3] + bytes)
                     : "memory", "cc", "x8", "p0", "p8", "z0", "z1", "z2", "z3", "z16", "z17", "z18", "z19", "z20",
                       "z21", "z22", "z23", "z24", "z25", "z26", "z27", "z28", "z29", "z30", "z31");
}

// The same for any vector length.
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
        if (args->m == 1) one_token(args, token_4);
        else sp_gemm_r_sme(args, product_2x2, product_1x4, store_pair);
    else if (args->m == 1) one_token(args, token_any);
    else sp_gemm_r_sme(args, sp_product_2x2, sp_product_1x4, sp_store_pair);
}
