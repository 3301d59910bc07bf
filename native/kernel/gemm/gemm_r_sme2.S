// SPDX-License-Identifier: Apache-2.0
// The inner loops of the int8 product with one scale per row, SME2, 512 bits (gemm_r_sme.h): one load brings four
// lines, that is four steps of k of one panel, so 2 x 2 tiles take four loads for 16 SMOPA. Pointers stand at the ends
// of the panels and share one negative offset, which is the counter too; second pointers, four lines on, serve the
// second half of a turn.
//
//  x0: sp_units { a[2], w[4], k }

#include "kernel/sme/macros.s"

.macro load first, last, at
    ld1b    {z\first\().b-z\last\().b}, pn8/z, [\at, x8]
.endm

.macro product a, w0, w1, tile0, tile1
    smopa   za\tile0\().s, p0/m, p0/m, z\a\().b, z\w0\().b
    smopa   za\tile1\().s, p0/m, p0/m, z\a\().b, z\w1\().b
.endm

.macro step_2x2 a0, a1, w0, w1
    product \a0, \w0, \w1, 0, 1
    product \a1, \w0, \w1, 2, 3
.endm

.macro step_1x4 a, w0, w1, w2, w3
    product \a, \w0, \w1, 0, 1
    product \a, \w2, \w3, 2, 3
.endm

// Ends of the operands into x1..x7, and of the second pointers, 256 bytes on, into x9..x15.
.macro pointers units:vararg
    ldp     x1, x2, [x0]
    ldp     x3, x4, [x0, #16]
    ldp     x6, x7, [x0, #32]
    ldr     x5, [x0, #48]
    lsl     x5, x5, #4              // bytes of a panel
    neg     x8, x5
.irp n, \units
    add     x\n, x\n, x5
.endr
    ptrue   p0.b
    ptrue   pn8.b
    zero    {za}
.endm

SP_BEGIN(sp_gemm_r_2x2_sme2)
    pointers 1, 2, 3, 4
    add     x9, x1, #256
    add     x10, x2, #256
    add     x11, x3, #256
    add     x12, x4, #256
1:
    load    0, 3, x1
    load    16, 19, x3
    load    20, 23, x4
    load    4, 7, x2
    step_2x2 0, 4, 16, 20
    step_2x2 1, 5, 17, 21
    step_2x2 2, 6, 18, 22
    step_2x2 3, 7, 19, 23
    load    24, 27, x9
    load    16, 19, x11
    load    20, 23, x12
    load    28, 31, x10
    step_2x2 24, 28, 16, 20
    step_2x2 25, 29, 17, 21
    step_2x2 26, 30, 18, 22
    step_2x2 27, 31, 19, 23
    adds    x8, x8, #512
    b.ne    1b
    ret
SP_END(sp_gemm_r_2x2_sme2)

SP_BEGIN(sp_gemm_r_1x4_sme2)
    pointers 1, 3, 4, 6, 7
    add     x9, x1, #256
    add     x11, x3, #256
    add     x12, x4, #256
    add     x14, x6, #256
    add     x15, x7, #256
1:
    load    0, 3, x1
    load    16, 19, x3
    load    20, 23, x4
    load    24, 27, x6
    load    28, 31, x7
    step_1x4 0, 16, 20, 24, 28
    step_1x4 1, 17, 21, 25, 29
    step_1x4 2, 18, 22, 26, 30
    step_1x4 3, 19, 23, 27, 31
    load    4, 7, x9
    load    16, 19, x11
    load    20, 23, x12
    load    24, 27, x14
    load    28, 31, x15
    step_1x4 4, 16, 20, 24, 28
    step_1x4 5, 17, 21, 25, 29
    step_1x4 6, 18, 22, 26, 30
    step_1x4 7, 19, 23, 27, 31
    adds    x8, x8, #512
    b.ne    1b
    ret
SP_END(sp_gemm_r_1x4_sme2)

// One token against four panels: its four bytes in all lanes, and equal lines of four panels, by one SDOT into four
// vectors of ZA. Panels are loaded into every fourth register, so that equal lines become neighbours. Each of four
// steps has accumulators of its own, for SDOT takes longer than until its turn comes again; in the end they are added.
.macro panel at, z0, z1, z2, z3
    ld1b    {z\z0\().b, z\z1\().b, z\z2\().b, z\z3\().b}, pn8/z, [\at, x8]
.endm

SP_BEGIN(sp_gemm_r_token_sme2)
    pointers 3, 4, 6, 7
    mov     w9, #0
1:
    panel   x3, 16, 20, 24, 28
    panel   x4, 17, 21, 25, 29
    panel   x6, 18, 22, 26, 30
    panel   x7, 19, 23, 27, 31
    ld1rw   {z0.s}, p0/z, [x1]
    ld1rw   {z1.s}, p0/z, [x1, #64]
    ld1rw   {z2.s}, p0/z, [x1, #128]
    ld1rw   {z3.s}, p0/z, [x1, #192]
    sdot    za.s[w9, 0, vgx4], {z16.b-z19.b}, z0.b
    sdot    za.s[w9, 1, vgx4], {z20.b-z23.b}, z1.b
    sdot    za.s[w9, 2, vgx4], {z24.b-z27.b}, z2.b
    sdot    za.s[w9, 3, vgx4], {z28.b-z31.b}, z3.b
    add     x1, x1, #256
    adds    x8, x8, #256
    b.ne    1b
    mova    {z16.d-z19.d}, za.d[w9, 1, vgx4]
    mova    {z20.d-z23.d}, za.d[w9, 2, vgx4]
    mova    {z24.d-z27.d}, za.d[w9, 3, vgx4]
    add     za.s[w9, 0, vgx4], {z16.s-z19.s}
    add     za.s[w9, 0, vgx4], {z20.s-z23.s}
    add     za.s[w9, 0, vgx4], {z24.s-z27.s}
    ret
SP_END(sp_gemm_r_token_sme2)
