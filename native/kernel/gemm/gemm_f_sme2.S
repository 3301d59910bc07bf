// SPDX-License-Identifier: Apache-2.0
// Float product, SME2, 512 bits (gemm_f_sme.h): all rows and columns over a run of k that fits the turned block.
//
// For each block of 16 rows of a: turn it, then for each 64 columns take the products and store them. Everything that
// moves, moves four vectors at a time:
//  * 64 columns of a row are one load into every fourth register ({z16, z20, z24, z28}), so that four rows leave four
//    neighbouring registers for each 16 columns, which go to ZA in one move: 16 x 64 values in 16 loads and 16 moves.
//    Results leave ZA the same way backwards.
//  * Columns of ZA are moved four at a time too, and stored as four lines of the turned block.
//  * b is read four steps of one strip at a time (strips: weights, keys), or four strips of one step (rows: values).
//
// Where fewer than 16 rows are left, the accesses of the others are switched off by their predicate, and so are columns
// beyond the last; a strip beyond the last is the first one once more, and is not stored.
//
//  x0      sp_walk { a, lda, b, strip, step, y, ldy, m, n, k, turned, add }, counts in elements
//  x1      turned block                  x2       a, at the block's first row
//  x3-x5   1, 2, 3 x lda                 x7       y, at the block's first row
//  x8-x10  1, 2, 3 x ldy                 w12-w15  rows and columns of ZA: 0, 4, 8, 12
//  x16     b, at the columns at hand     x19-x25  multiples of strip, or of step
//  x26     turned block, moving          x27      k that is left
//  x28     rows that are left            x30      columns that are left
//  x11     a or y, moving                x6, x17  at hand
//  p0, pn8 all                           pn9      the row at hand      pn10  columns at hand

#include "kernel/sme/macros.s"

// ---- sixteen rows of 64 columns, in fours

// Row r of the sixteen as far as it is there: `count` elements or none.
.macro there r, count, whole
.if !\whole
    cmp     x28, #\r
    csel    x6, \count, xzr, hi
    whilelo pn9.s, xzr, x6, vlx4
.endif
.endm

// From \at into ZA, and from ZA to \at; l1, l2, l3 are multiples of the row's length.
.macro four_rows_in r, w, at, l1, l2, l3, count, whole
    there   (\r), \count, \whole
    ld1w    {z16.s, z20.s, z24.s, z28.s}, pn9/z, [\at]
    there   (\r + 1), \count, \whole
    ld1w    {z17.s, z21.s, z25.s, z29.s}, pn9/z, [\at, \l1, lsl #2]
    there   (\r + 2), \count, \whole
    ld1w    {z18.s, z22.s, z26.s, z30.s}, pn9/z, [\at, \l2, lsl #2]
    there   (\r + 3), \count, \whole
    ld1w    {z19.s, z23.s, z27.s, z31.s}, pn9/z, [\at, \l3, lsl #2]
    mova    za0h.s[\w, 0:3], {z16.s-z19.s}
    mova    za1h.s[\w, 0:3], {z20.s-z23.s}
    mova    za2h.s[\w, 0:3], {z24.s-z27.s}
    mova    za3h.s[\w, 0:3], {z28.s-z31.s}
.endm

.macro four_rows_out r, w, at, valid, whole
    mova    {z16.s-z19.s}, za0h.s[\w, 0:3]
    mova    {z20.s-z23.s}, za1h.s[\w, 0:3]
    mova    {z24.s-z27.s}, za2h.s[\w, 0:3]
    mova    {z28.s-z31.s}, za3h.s[\w, 0:3]
    there   (\r), x30, \whole
    st1w    {z16.s, z20.s, z24.s, z28.s}, \valid, [\at]
    there   (\r + 1), x30, \whole
    st1w    {z17.s, z21.s, z25.s, z29.s}, \valid, [\at, x8, lsl #2]
    there   (\r + 2), x30, \whole
    st1w    {z18.s, z22.s, z26.s, z30.s}, \valid, [\at, x9, lsl #2]
    there   (\r + 3), x30, \whole
    st1w    {z19.s, z23.s, z27.s, z31.s}, \valid, [\at, x10, lsl #2]
.endm

// All sixteen; the first is at x11.
.macro rows_in l1, l2, l3, count, whole
    four_rows_in 0, w12, x11, \l1, \l2, \l3, \count, \whole
    add     x17, x11, \l1, lsl #4
    four_rows_in 4, w13, x17, \l1, \l2, \l3, \count, \whole
    add     x17, x17, \l1, lsl #4
    four_rows_in 8, w14, x17, \l1, \l2, \l3, \count, \whole
    add     x17, x17, \l1, lsl #4
    four_rows_in 12, w15, x17, \l1, \l2, \l3, \count, \whole
.endm

.macro rows_out valid, whole
    four_rows_out 0, w12, x11, \valid, \whole
    add     x17, x11, x8, lsl #4
    four_rows_out 4, w13, x17, \valid, \whole
    add     x17, x17, x8, lsl #4
    four_rows_out 8, w14, x17, \valid, \whole
    add     x17, x17, x8, lsl #4
    four_rows_out 12, w15, x17, \valid, \whole
.endm

// ---- turning

// Sixteen columns of a tile become sixteen lines.
.macro columns_out tile, line
    mova    {z16.s-z19.s}, za\tile\()v.s[w12, 0:3]
    mova    {z20.s-z23.s}, za\tile\()v.s[w13, 0:3]
    mova    {z24.s-z27.s}, za\tile\()v.s[w14, 0:3]
    mova    {z28.s-z31.s}, za\tile\()v.s[w15, 0:3]
    st1w    {z16.s-z19.s}, pn8, [x26, #(\line), mul vl]
    st1w    {z20.s-z23.s}, pn8, [x26, #(\line + 4), mul vl]
    st1w    {z24.s-z27.s}, pn8, [x26, #(\line + 8), mul vl]
    st1w    {z28.s-z31.s}, pn8, [x26, #(\line + 12), mul vl]
.endm

// ---- products

.macro product a, b0, b1, b2, b3
    fmopa   za0.s, p0/m, p0/m, z\a\().s, z\b0\().s
    fmopa   za1.s, p0/m, p0/m, z\a\().s, z\b1\().s
    fmopa   za2.s, p0/m, p0/m, z\a\().s, z\b2\().s
    fmopa   za3.s, p0/m, p0/m, z\a\().s, z\b3\().s
.endm

// Four steps, `at` lines on. Strips are at x17, x23, x24, x25.
.macro strips_4 at
    ld1w    {z0.s-z3.s}, pn8/z, [x26, #\at, mul vl]
    ld1w    {z4.s-z7.s}, pn8/z, [x17, #\at, mul vl]
    ld1w    {z16.s-z19.s}, pn8/z, [x23, #\at, mul vl]
    ld1w    {z20.s-z23.s}, pn8/z, [x24, #\at, mul vl]
    ld1w    {z24.s-z27.s}, pn8/z, [x25, #\at, mul vl]
    product 0, 4, 16, 20, 24
    product 1, 5, 17, 21, 25
    product 2, 6, 18, 22, 26
    product 3, 7, 19, 23, 27
.endm

.macro strips_advance steps
    add     x26, x26, #(64 * \steps)
    add     x17, x17, #(64 * \steps)
    add     x23, x23, #(64 * \steps)
    add     x24, x24, #(64 * \steps)
    add     x25, x25, #(64 * \steps)
.endm

.macro strips_1
    ldr     z0, [x26]
    ldr     z4, [x17]
    ldr     z16, [x23]
    ldr     z20, [x24]
    ldr     z24, [x25]
    product 0, 4, 16, 20, 24
.endm

.macro strips_begin
    ldr     x19, [x0, #24]
    lsl     x20, x19, #1
    add     x21, x20, x19
.endm

.macro strips_columns
    mov     x17, x16
    add     x23, x16, x19, lsl #2
    add     x24, x16, x20, lsl #2
    add     x25, x16, x21, lsl #2
    add     x16, x16, x19, lsl #4
    cmp     x30, #64
    b.hs    1f
    cmp     x30, #16
    csel    x23, x23, x17, hi
    cmp     x30, #32
    csel    x24, x24, x17, hi
    cmp     x30, #48
    csel    x25, x25, x17, hi
1:
.endm

.macro strips_32
    strips_4 0
    strips_4 4
    strips_4 8
    strips_4 12
    strips_4 16
    strips_4 20
    strips_4 24
    strips_4 28
.endm

// Rows of b from x17 on, x19-x25 apart.
.macro rows_4 at
    ld1w    {z0.s-z3.s}, pn8/z, [x26, #\at, mul vl]
    ld1w    {z4.s-z7.s}, pn10/z, [x17]
    ld1w    {z16.s-z19.s}, pn10/z, [x17, x19, lsl #2]
    ld1w    {z20.s-z23.s}, pn10/z, [x17, x20, lsl #2]
    ld1w    {z24.s-z27.s}, pn10/z, [x17, x21, lsl #2]
    product 0, 4, 5, 6, 7
    product 1, 16, 17, 18, 19
    product 2, 20, 21, 22, 23
    product 3, 24, 25, 26, 27
.endm

// Four steps, and the four after them.
.macro rows_8 at
    rows_4  \at
    ld1w    {z28.s-z31.s}, pn8/z, [x26, #(\at + 4), mul vl]
    ld1w    {z4.s-z7.s}, pn10/z, [x17, x22, lsl #2]
    ld1w    {z16.s-z19.s}, pn10/z, [x17, x23, lsl #2]
    ld1w    {z20.s-z23.s}, pn10/z, [x17, x24, lsl #2]
    ld1w    {z24.s-z27.s}, pn10/z, [x17, x25, lsl #2]
    product 28, 4, 5, 6, 7
    product 29, 16, 17, 18, 19
    product 30, 20, 21, 22, 23
    product 31, 24, 25, 26, 27
    add     x17, x17, x19, lsl #5
.endm

.macro rows_32
    rows_8  0
    rows_8  8
    rows_8  16
    rows_8  24
.endm

.macro rows_1
    ldr     z0, [x26]
    ld1w    {z4.s-z7.s}, pn10/z, [x17]
    product 0, 4, 5, 6, 7
.endm

// Thirty-two steps advance x17 by themselves.
.macro rows_advance steps
    add     x26, x26, #(64 * \steps)
.if \steps == 4
    add     x17, x17, x19, lsl #4
.elseif \steps == 1
    add     x17, x17, x19, lsl #2
.endif
.endm

.macro rows_begin
    ldr     x19, [x0, #32]
    lsl     x20, x19, #1
    add     x21, x20, x19
    lsl     x22, x19, #2
    add     x23, x22, x19
    add     x24, x22, x20
    add     x25, x22, x21
.endm

.macro rows_columns
    mov     x17, x16
    add     x16, x16, #256
.endm

// ---- the walk

// What most calls do not need stands at the end.
.macro walk form
    stp     x19, x20, [sp, #-96]!
    .cfi_def_cfa_offset 96
    stp     x21, x22, [sp, #16]
    stp     x23, x24, [sp, #32]
    stp     x25, x26, [sp, #48]
    stp     x27, x28, [sp, #64]
    str     x30, [sp, #80]
    .cfi_offset w30, -16
    ldp     x2, x3, [x0]
    ldp     x7, x8, [x0, #40]
    ldr     x28, [x0, #56]
    ldr     x1, [x0, #80]
    lsl     x4, x3, #1
    add     x5, x4, x3
    lsl     x9, x8, #1
    add     x10, x9, x8
    mov     w12, #0
    mov     w13, #4
    mov     w14, #8
    mov     w15, #12
    ptrue   p0.s
    ptrue   pn8.s
    \form\()_begin

10: // sixteen rows: turn them, 64 columns a time
    ldr     x27, [x0, #72]
    add     x26, x1, #2048
    mov     x11, x2
    cmp     x28, #16
    b.lo    31f
11: whilelo pn9.s, xzr, x27, vlx4
    rows_in x3, x4, x5, x27, 1
12: columns_out 0, -32
    columns_out 1, -16
    columns_out 2, 0
    columns_out 3, 16
    subs    x27, x27, #64
    b.hi    30f
    ldr     x16, [x0, #16]
    ldr     x30, [x0, #64]
    mov     x11, x7

13: // 64 columns: from zero or from y
    whilelo pn10.s, xzr, x30, vlx4
    ldr     x6, [x0, #88]
    cbnz    x6, 32f
    zero    {za}
14: \form\()_columns
    ldr     x27, [x0, #72]
    mov     x26, x1
    cmp     x27, #32
    b.lo    16f
15: \form\()_32
    subs    x27, x27, #32
    b.eq    18f
    \form\()_advance 32
    cmp     x27, #32
    b.hs    15b
16: cmp     x27, #4
    b.lo    17f
    \form\()_4 0
    \form\()_advance 4
    subs    x27, x27, #4
    b.eq    18f
    b       16b
17: \form\()_1
    \form\()_advance 1
    subs    x27, x27, #1
    b.ne    17b
18: cmp     x28, #16
    b.lo    33f
    rows_out pn10, 1
19: add     x11, x11, #256
    subs    x30, x30, #64
    b.hi    13b

    add     x2, x2, x3, lsl #6
    add     x7, x7, x8, lsl #6
    subs    x28, x28, #16
    b.hi    10b
    ldp     x21, x22, [sp, #16]
    ldp     x23, x24, [sp, #32]
    ldp     x25, x26, [sp, #48]
    ldp     x27, x28, [sp, #64]
    ldr     x30, [sp, #80]
    ldp     x19, x20, [sp], #96
    ret

30: add     x11, x11, #256
    add     x26, x26, #4096
    cmp     x28, #16
    b.hs    11b
31: rows_in x3, x4, x5, x27, 0
    b       12b
32: rows_in x8, x9, x10, x30, 0
    b       14b
33: rows_out pn9, 0
    b       19b
.endm

SP_BEGIN(sp_gemm_f_strips_sme2)
    walk    strips
SP_END(sp_gemm_f_strips_sme2)

SP_BEGIN(sp_gemm_f_rows_sme2)
    walk    rows
SP_END(sp_gemm_f_rows_sme2)
