// SPDX-License-Identifier: Apache-2.0
// For assembly that ELF and Mach-O share: names of symbols, heads and ends of functions.
#pragma once

#ifdef __APPLE__
#define SP_SYMBOL(name) _##name
#define SP_HIDDEN .private_extern
#else
#define SP_SYMBOL(name) name
#define SP_HIDDEN .hidden
#endif

// A function that is seen in this library alone.
.macro sp_begin symbol
    .text
    .globl  \symbol
    SP_HIDDEN \symbol
#ifdef __ELF__
    .type   \symbol, %function
#endif
    .p2align 4
\symbol:
    .cfi_startproc
    hint    #34                     // bti c
.endm

.macro sp_end symbol
    .cfi_endproc
#ifdef __ELF__
    .size   \symbol, . - \symbol
#endif
.endm

#define SP_BEGIN(name) sp_begin SP_SYMBOL(name)
#define SP_END(name) sp_end SP_SYMBOL(name)

// The stack need not be executable.
#ifdef __ELF__
    .section .note.GNU-stack, "", %progbits
#endif
