// SPDX-License-Identifier: Apache-2.0
// What the matrix-product kernels share across instruction sets.
#pragma once

#include "kernel/declare.h"

// A template is inlined into each kernel file with constants for format and tile size.
#define SP_TEMPLATE static inline __attribute__((always_inline))

// Before every loop over accumulators: unrolled early, so that the array becomes registers. Left to itself gcc unrolls
// after it has given the array a place on the stack, and then stores every accumulator in every step.
#ifdef __clang__
#define SP_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SP_UNROLL _Pragma("GCC unroll 16")
#endif

// The quantised weight kinds as constants for templates.
typedef enum sp_weight_kind { SP_WEIGHT_Q4S, SP_WEIGHT_Q4A, SP_WEIGHT_Q8S } sp_weight_kind;
