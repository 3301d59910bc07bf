// SPDX-License-Identifier: Apache-2.0
// See gemm_r_sme.h. The loops for 512 bits: a step of k is four (2 x 2) or five (1 x 4) plain vector loads, whose
// offsets reach far, and four SMOPA. Sixteen steps are written out; k is a multiple of eight steps, so an odd half is
// entered in the middle.
#include "kernel/gemm/gemm_r_sme.h"

#define LOAD(z, pointer, step) "ldr z" #z ", [%[" #pointer "], #" #step ", mul vl]\n"
#define MOPA(tile, a, w) "smopa za" #tile ".s, %[all]/m, %[all]/m, z" #a ".b, z" #w ".b\n"

#define STEP_2X2(step, za, zb, zv, zw)                                                                       \
    LOAD(za, a0, step)                                                                                       \
    LOAD(zv, w0, step) LOAD(zw, w1, step) LOAD(zb, a1, step) MOPA(0, za, zv) MOPA(1, za, zw) MOPA(2, zb, zv) \
        MOPA(3, zb, zw)
#define STEP_1X4(step, za, zt, zu, zv, zw)                                                                      \
    LOAD(za, a0, step)                                                                                          \
    LOAD(zt, w0, step) LOAD(zu, w1, step) LOAD(zv, w2, step) LOAD(zw, w3, step) MOPA(0, za, zt) MOPA(1, za, zu) \
        MOPA(2, za, zv) MOPA(3, za, zw)

SP_INLINE void product_2x2(const sp_units *units) SP_STREAMING {
    const int8_t *a0 = units->a[0], *a1 = units->a[1], *w0 = units->w[0], *w1 = units->w[1];
    size_t eights = units->k / 32;
    __asm__ volatile(
        "zero {za}\n"
        "tbz %[n], #0, 1f\n"
        "sub %[a0], %[a0], #512\n sub %[a1], %[a1], #512\n sub %[w0], %[w0], #512\n sub %[w1], %[w1], #512\n"
        "b 2f\n"
        "1:\n" STEP_2X2(0, 0, 1, 2, 3) STEP_2X2(1, 4, 5, 6, 7) STEP_2X2(2, 16, 17, 18, 19) STEP_2X2(3, 20, 21, 22, 23)
            STEP_2X2(4, 0, 1, 2, 3) STEP_2X2(5, 4, 5, 6, 7) STEP_2X2(6, 16, 17, 18, 19)
                STEP_2X2(7, 20, 21, 22, 23) "2:\n" STEP_2X2(8, 0, 1, 2, 3) STEP_2X2(9, 4, 5, 6, 7)
                    STEP_2X2(10, 16, 17, 18, 19) STEP_2X2(11, 20, 21, 22, 23) STEP_2X2(12, 0, 1, 2, 3)
                        STEP_2X2(13, 4, 5, 6, 7) STEP_2X2(14, 16, 17, 18, 19)
                            STEP_2X2(15, 20, 21, 22, 23) "add %[a0], %[a0], #1024\n add %[a1], %[a1], #1024\n add "
                                                         "%[w0], %[w0], #1024\n add %[w1], %[w1], #1024\n"
                                                         "subs %[n], %[n], #2\n"
                                                         "b.gt 1b\n"
        : [a0] "+r"(a0), [a1] "+r"(a1), [w0] "+r"(w0), [w1] "+r"(w1), [n] "+r"(eights)
        : [all] "Upl"(svptrue_b8())
        : "memory", "cc", "z0", "z1", "z2", "z3", "z4", "z5", "z6", "z7", "z16", "z17", "z18", "z19", "z20", "z21",
          "z22", "z23");
}

SP_INLINE void product_1x4(const sp_units *units) SP_STREAMING {
    const int8_t *a0 = units->a[0], *w0 = units->w[0], *w1 = units->w[1], *w2 = units->w[2], *w3 = units->w[3];
    size_t eights = units->k / 32;
    __asm__ volatile(
        "zero {za}\n"
        "1:\n" STEP_1X4(0, 0, 1, 2, 3, 4) STEP_1X4(1, 5, 6, 7, 16, 17) STEP_1X4(2, 18, 19, 20, 21, 22)
            STEP_1X4(3, 23, 24, 25, 26, 27) STEP_1X4(4, 0, 1, 2, 3, 4) STEP_1X4(5, 5, 6, 7, 16, 17)
                STEP_1X4(6, 18, 19, 20, 21, 22) STEP_1X4(
                    7, 23, 24, 25, 26, 27) "add %[a0], %[a0], #512\n add %[w0], %[w0], #512\n add %[w1], %[w1], #512\n"
                                           "add %[w2], %[w2], #512\n add %[w3], %[w3], #512\n"
                                           "subs %[n], %[n], #1\n"
                                           "b.ne 1b\n"
        : [a0] "+r"(a0), [w0] "+r"(w0), [w1] "+r"(w1), [w2] "+r"(w2), [w3] "+r"(w3), [n] "+r"(eights)
        : [all] "Upl"(svptrue_b8())
        : "memory", "cc", "z0", "z1", "z2", "z3", "z4", "z5", "z6", "z7", "z16", "z17", "z18", "z19", "z20", "z21",
          "z22", "z23", "z24", "z25", "z26", "z27");
}

SP_BODY(sp_gemm_f32_q8r_q8r_32x32_sme, sp_gemm_r_args, SP_STREAMING) {
    if (sp_line_is_vector()) sp_gemm_r_sme(args, product_2x2, product_1x4, sp_store_pair);
    else sp_gemm_r_sme(args, sp_product_2x2, sp_product_1x4, sp_store_pair);
}
