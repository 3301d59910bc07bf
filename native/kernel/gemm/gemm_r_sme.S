// SPDX-License-Identifier: Apache-2.0
// The inner loops of the int8 product with one scale per row, SME1, 512 bits (gemm_r_sme.h): one line is one vector, a
// step of k is four (2 x 2) or five (1 x 4) loads and four SMOPA. Offsets of a plain vector load reach far, so many
// steps share one advance of the pointers.
//
//  x0: sp_units { a[2], w[4], k }

#include "kernel/sme/macros.s"

.macro product a, w0, w1, tile0, tile1
    smopa   za\tile0\().s, p0/m, p0/m, z\a\().b, z\w0\().b
    smopa   za\tile1\().s, p0/m, p0/m, z\a\().b, z\w1\().b
.endm

.macro step_2x2 at, a0, a1, w0, w1
    ldr     z\a0, [x1, #\at, mul vl]
    ldr     z\w0, [x3, #\at, mul vl]
    ldr     z\w1, [x4, #\at, mul vl]
    ldr     z\a1, [x2, #\at, mul vl]
    product \a0, \w0, \w1, 0, 1
    product \a1, \w0, \w1, 2, 3
.endm

.macro step_1x4 at, a, w0, w1, w2, w3
    ldr     z\a, [x1, #\at, mul vl]
    ldr     z\w0, [x3, #\at, mul vl]
    ldr     z\w1, [x4, #\at, mul vl]
    ldr     z\w2, [x6, #\at, mul vl]
    ldr     z\w3, [x7, #\at, mul vl]
    product \a, \w0, \w1, 0, 1
    product \a, \w2, \w3, 2, 3
.endm

// Sixteen steps a turn. k is a multiple of eight of them: an odd half is entered in the middle.
SP_BEGIN(sp_gemm_r_2x2_sme)
    ldp     x1, x2, [x0]
    ldp     x3, x4, [x0, #16]
    ldr     x5, [x0, #48]
    ptrue   p0.b
    zero    {za}
    tbz     x5, #5, 1f
    sub     x1, x1, #512
    sub     x2, x2, #512
    sub     x3, x3, #512
    sub     x4, x4, #512
    b       2f
1:
    step_2x2 0, 0, 1, 2, 3
    step_2x2 1, 4, 5, 6, 7
    step_2x2 2, 16, 17, 18, 19
    step_2x2 3, 20, 21, 22, 23
    step_2x2 4, 24, 25, 26, 27
    step_2x2 5, 28, 29, 30, 31
    step_2x2 6, 0, 1, 2, 3
    step_2x2 7, 4, 5, 6, 7
2:
    step_2x2 8, 16, 17, 18, 19
    step_2x2 9, 20, 21, 22, 23
    step_2x2 10, 24, 25, 26, 27
    step_2x2 11, 28, 29, 30, 31
    step_2x2 12, 0, 1, 2, 3
    step_2x2 13, 4, 5, 6, 7
    step_2x2 14, 16, 17, 18, 19
    step_2x2 15, 20, 21, 22, 23
    add     x1, x1, #1024
    add     x2, x2, #1024
    add     x3, x3, #1024
    add     x4, x4, #1024
    subs    x5, x5, #64
    b.gt    1b
    ret
SP_END(sp_gemm_r_2x2_sme)

SP_BEGIN(sp_gemm_r_1x4_sme)
    ldr     x1, [x0]
    ldp     x3, x4, [x0, #16]
    ldp     x6, x7, [x0, #32]
    ldr     x5, [x0, #48]
    ptrue   p0.b
    zero    {za}
1:
    step_1x4 0, 0, 1, 2, 3, 4
    step_1x4 1, 5, 6, 7, 16, 17
    step_1x4 2, 18, 19, 20, 21, 22
    step_1x4 3, 23, 24, 25, 26, 27
    step_1x4 4, 0, 1, 2, 3, 4
    step_1x4 5, 5, 6, 7, 16, 17
    step_1x4 6, 18, 19, 20, 21, 22
    step_1x4 7, 23, 24, 25, 26, 27
    add     x1, x1, #512
    add     x3, x3, #512
    add     x4, x4, #512
    add     x6, x6, #512
    add     x7, x7, #512
    subs    x5, x5, #32
    b.ne    1b
    ret
SP_END(sp_gemm_r_1x4_sme)
