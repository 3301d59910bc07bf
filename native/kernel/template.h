// SPDX-License-Identifier: Apache-2.0
// How a kernel's code is shared between kernels without a call: written once, inlined with constants for format and
// tile, its arrays of vectors kept in registers.
#pragma once

// A template is inlined into each kernel file with constants for format and tile size.
#define SP_TEMPLATE static inline __attribute__((always_inline))

// Before every loop over accumulators: unrolled early, so that the array becomes registers. Left to itself gcc unrolls
// after it has given the array a place on the stack, and then stores every accumulator in every step.
#ifdef __clang__
#define SP_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SP_UNROLL _Pragma("GCC unroll 16")
#endif

// Before a loop that stays one: its body fills the machine, and several copies of it would not fit the registers.
#ifdef __clang__
#define SP_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define SP_ROLLED _Pragma("GCC unroll 1")
#endif

// Of a template that kernels of the matrix unit use too, in streaming mode.
#ifdef __ARM_FEATURE_SME
#define SP_ANY_MODE __arm_streaming_compatible
#else
#define SP_ANY_MODE
#endif
