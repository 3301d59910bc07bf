// SPDX-License-Identifier: Apache-2.0
// The way into the matrix unit. A kernel of the tiers `sme` and `sme2` is two symbols: the registered one, which is
// made here and is an ordinary C function, and `<name>_body`, compiled from C, which runs in streaming mode with ZA on
// (simd/sme.h). In between lies what the compilers would otherwise ask a run-time library for:
//
//  * Entering and leaving streaming mode zeroes all vector registers, so those that a C function preserves (the low
//    halves of v8..v15) are saved. General registers are not touched by the mode.
//  * ZA may hold another function's values, left to whoever needs ZA next to be saved (the lazy scheme of the AAPCS64:
//    TPIDR2_EL0 then points to a block that says where). They are saved before ZA is used. The body finds ZA with any
//    content, and it is off afterwards.
//
// The kernels are read from the families' lists, so a new kernel needs nothing here.

#include "kernel/sme/macros.s"

// The lazily saved slices: a block is { buffer, 16-bit number of slices, 6 reserved bytes }.
    .text
    .p2align 4
sp_za_commit:
    mrs     x16, TPIDR2_EL0
    ldr     x17, [x16]
    ldrh    w16, [x16, #8]
    msr     TPIDR2_EL0, xzr
    cbz     x17, 2f
    mov     w15, #0
1:  cmp     w15, w16
    b.hs    2f
    str     za[w15, 0], [x17]
    addsvl  x17, x17, #1
    add     w15, w15, #1
    b       1b
2:  ret

.macro sp_entry symbol, body
    sp_begin \symbol
    stp     x29, x30, [sp, #-80]!
    .cfi_def_cfa_offset 80
    .cfi_offset w30, -72
    .cfi_offset w29, -80
    mov     x29, sp
    stp     d8, d9, [sp, #16]
    stp     d10, d11, [sp, #32]
    stp     d12, d13, [sp, #48]
    stp     d14, d15, [sp, #64]
    mrs     x16, TPIDR2_EL0
    cbz     x16, 1f
    bl      sp_za_commit
1:  smstart
    bl      \body
    smstop
    ldp     d14, d15, [sp, #64]
    ldp     d12, d13, [sp, #48]
    ldp     d10, d11, [sp, #32]
    ldp     d8, d9, [sp, #16]
    ldp     x29, x30, [sp], #80
    ret
    sp_end  \symbol
.endm

#define SP_ENTER(name) sp_entry SP_SYMBOL(name), SP_SYMBOL(name##_body)
#define SP_ENTRY_SP_TIER_REF(name)
#define SP_ENTRY_SP_TIER_NEON(name)
#define SP_ENTRY_SP_TIER_NEON_DOTPROD(name)
#define SP_ENTRY_SP_TIER_NEON_I8MM(name)
#define SP_ENTRY_SP_TIER_SME(name) SP_ENTER(name)
#define SP_ENTRY_SP_TIER_SME2(name) SP_ENTER(name)
#define SP_KERNEL(slot, tier, mr, nr, name) SP_ENTRY_##tier(name)
#include "kernel/gemm/gemm.inc"
