// SPDX-License-Identifier: Apache-2.0
// What the matrix-product kernels share across instruction sets.
#pragma once

#include "kernel/declare.h"

// A template is inlined into each kernel file with constants for format and tile size.
#define SP_TEMPLATE static inline __attribute__((always_inline))

// The quantised weight kinds as constants for templates.
typedef enum sp_weight_kind { SP_WEIGHT_Q4S, SP_WEIGHT_Q4A, SP_WEIGHT_Q8S } sp_weight_kind;
