// SPDX-License-Identifier: Apache-2.0
// Memory: aligned blocks for what is used whole, regions for what is large and touched little by little.
//
// Sizes are multiplied here, with the overflow checked, so that no caller does it by hand. Memory arrives zeroed:
// padding and unused KV bytes must be zero for results to be the same everywhere.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define SP_ALIGN 64  // of blocks: one cache line, one 512-bit vector
#define SP_LINE 128  // apart enough for two cores: Apple's cache line, and the pair that x86 prefetches together

// a * b and a + b into *out; false, and *out untouched, where the result does not fit.
bool sp_size_mul(size_t a, size_t b, size_t *out);
bool sp_size_add(size_t a, size_t b, size_t *out);

// count * size bytes of zeros, aligned to SP_ALIGN; NULL where the product overflows or memory is short.
// Zero bytes give a block that may not be read. Free with sp_free.
void *sp_alloc(size_t count, size_t size);

// As sp_alloc, aligned to `align`: a power of two, SP_ALIGN or more.
void *sp_alloc_aligned(size_t align, size_t count, size_t size);

void sp_free(void *block);  // NULL is allowed

// Address space whose pages take memory when first touched, and are zero then. Not inherited as garbage, not swapped
// in from a file: an anonymous private mapping.
typedef struct sp_region {
    void *base;    // page aligned; NULL when empty
    size_t bytes;  // rounded up to whole pages
} sp_region;

// Reserves `bytes` > 0. SP_ERR_MEMORY leaves `region` empty.
sp_status sp_region_reserve(sp_region *region, size_t bytes);

// Gives the memory of whole pages within [offset, offset + bytes) back to the system; the range reads as zero
// afterwards, whole pages or not. Pages may be touched again at once.
sp_status sp_region_discard(sp_region *region, size_t offset, size_t bytes);

void sp_region_release(sp_region *region);  // leaves it empty; an empty one is allowed

#ifdef SP_FAULT_INJECTION
// For tests: the `nth` request from now (1 = the next) to sp_alloc* or sp_region_reserve fails as if memory were
// short, and so does every later one, until called with 0. It counts requests of the whole process.
void sp_memory_fail_from(long nth);
#endif
