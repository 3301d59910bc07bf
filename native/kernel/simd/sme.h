// SPDX-License-Identifier: Apache-2.0
// What the kernels of the matrix unit share. Included by `_sme.c` and `_sme2.c` files alone.
//
// A body runs in streaming mode between an entry and its return (sme/entry.S): it may use what is legal there (no NEON
// arithmetic, no call of a function that is not streaming itself, so no memcpy either), and finds ZA with any content.
//
// The vector length is read, never assumed. All layouts are made of runs of 16 (rows of a panel, tokens), so work is
// cut into units of min(16, lanes): at 512 bits a unit is a panel and a 64-byte line is one vector; shorter vectors
// walk a line in pieces, longer ones see it under a predicate. Processors of today have 512 bits: that length has loops
// of its own, written out in assembly, where compilers would move pointers and registers about.
#pragma once

#include <arm_sme.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SP_STREAMING __arm_streaming __arm_inout("za")

// The same where the look-up table of SME2 may be used.
#ifdef __ARM_FEATURE_SME2
#define SP_STREAMING_TABLE __arm_streaming __arm_inout("za", "zt0")
#else
#define SP_STREAMING_TABLE SP_STREAMING
#endif

// Inlined into its body, with constants where the body gives them.
#define SP_INLINE static inline __attribute__((always_inline))

// The head of the body behind the entry of kernel `name`.
#define SP_BODY(name, args_type, mode)            \
    void name##_body(const args_type *args) mode; \
    void name##_body(const args_type *args) mode

enum { SP_PANEL_LINE = 64 };  // bytes of a line: 16 rows or tokens of 4 bytes

SP_INLINE size_t sp_least_size(size_t a, size_t b) __arm_streaming_compatible { return a < b ? a : b; }

// Rows or tokens of a unit.
SP_INLINE size_t sp_unit(void) SP_STREAMING { return sp_least_size(16, svcntw()); }

// A line is exactly one vector.
SP_INLINE bool sp_line_is_vector(void) SP_STREAMING { return svcntb() == SP_PANEL_LINE; }
