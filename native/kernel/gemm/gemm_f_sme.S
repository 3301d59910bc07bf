// SPDX-License-Identifier: Apache-2.0
// The inner loops of the float product, SME1, 512 bits (gemm_f_sme.h). One offset serves four strips of b, whatever
// their distances: a step of k is five loads, four FMOPA and one addition.

#include "kernel/sme/macros.s"

// ---- four tiles += turned block x four strips. x0: sp_factors { turned, b[4], step, k }

.macro step at, a, b0, b1, b2, b3
    ldr     z\a, [x1, #\at, mul vl]
    ld1w    {z\b0\().s}, p0/z, [x2, x8, lsl #2]
    ld1w    {z\b1\().s}, p0/z, [x3, x8, lsl #2]
    ld1w    {z\b2\().s}, p0/z, [x4, x8, lsl #2]
    ld1w    {z\b3\().s}, p0/z, [x5, x8, lsl #2]
    fmopa   za0.s, p0/m, p0/m, z\a\().s, z\b0\().s
    fmopa   za1.s, p0/m, p0/m, z\a\().s, z\b1\().s
    fmopa   za2.s, p0/m, p0/m, z\a\().s, z\b2\().s
    fmopa   za3.s, p0/m, p0/m, z\a\().s, z\b3\().s
    add     x8, x8, x6
.endm

SP_BEGIN(sp_gemm_f_multiply_sme)
    ldp     x1, x2, [x0]
    ldp     x3, x4, [x0, #16]
    ldp     x5, x6, [x0, #32]
    ldr     x7, [x0, #48]
    mov     x8, #0
    ptrue   p0.s
    subs    x7, x7, #4
    b.lo    2f
1:
    step    0, 0, 1, 2, 3, 4
    step    1, 5, 6, 7, 16, 17
    step    2, 18, 19, 20, 21, 22
    step    3, 23, 24, 25, 26, 27
    add     x1, x1, #256
    subs    x7, x7, #4
    b.hs    1b
2:
    adds    x7, x7, #4
    b.eq    4f
3:
    step    0, 0, 1, 2, 3, 4
    add     x1, x1, #64
    subs    x7, x7, #1
    b.ne    3b
4:
    ret
SP_END(sp_gemm_f_multiply_sme)

// ---- sixteen rows of a, sixteen columns at a time: rows into a tile, columns out of it. x0 turned, x1 a, x2 lda, x3 k

.macro rows w
    ld1w    {za0h.s[\w, 0]}, p1/z, [x9]
    ld1w    {za0h.s[\w, 1]}, p1/z, [x9, x2, lsl #2]
    ld1w    {za0h.s[\w, 2]}, p1/z, [x9, x4, lsl #2]
    ld1w    {za0h.s[\w, 3]}, p1/z, [x9, x5, lsl #2]
    add     x9, x9, x2, lsl #4
.endm

.macro columns w
    st1w    {za0v.s[\w, 0]}, p0, [x0]
    st1w    {za0v.s[\w, 1]}, p0, [x0, x6, lsl #2]
    st1w    {za0v.s[\w, 2]}, p0, [x0, x7, lsl #2]
    st1w    {za0v.s[\w, 3]}, p0, [x0, x8, lsl #2]
    add     x0, x0, #256
.endm

SP_BEGIN(sp_gemm_f_turn_sme)
    lsl     x4, x2, #1
    add     x5, x4, x2
    mov     x6, #16
    mov     x7, #32
    mov     x8, #48
    mov     w12, #0
    mov     w13, #4
    mov     w14, #8
    mov     w15, #12
    ptrue   p0.s
1:
    whilelo p1.s, xzr, x3
    mov     x9, x1
    rows    w12
    rows    w13
    rows    w14
    rows    w15
    columns w12
    columns w13
    columns w14
    columns w15
    add     x1, x1, #64
    subs    x3, x3, #16
    b.hi    1b
    ret
SP_END(sp_gemm_f_turn_sme)
