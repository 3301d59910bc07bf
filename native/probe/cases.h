// SPDX-License-Identifier: Apache-2.0
// Fixed products with known results: what the self-test asks of a kernel.
//
// Each is one product, at odd sizes, computed whole by the scalar reference. A kernel is asked for parts of it: one
// token and many, the columns that make one vector and those that leave the last one ragged. Every part must be the
// reference's, bit for bit, and nothing beside it may be written.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "kernel/kernel.h"

typedef struct sp_cases sp_cases;

// Makes operands and results: a millisecond or two. SP_ERR_MEMORY.
sp_status sp_cases_make(sp_cases **out);
void sp_cases_free(sp_cases *cases);

// Whether there are cases for kernels of this slot: the matrix products.
bool sp_cases_cover(sp_slot slot);

// Calls `kernel` for all parts of its slot's products; false at the first wrong one. `*calls` counts on. Uses memory of
// `cases`, so only one thread at a time.
bool sp_cases_hold(const sp_cases *cases, const sp_kernel *kernel, uint64_t *calls);
