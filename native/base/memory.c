// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

#ifdef SP_FAULT_INJECTION
// Requests left before memory "runs out"; negative: never. Only the test program has this switch.
static atomic_long allowance = -1;

void sp_memory_fail_from(long nth) { atomic_store(&allowance, nth > 0 ? nth - 1 : -1); }

static bool refused(void) {
    long left = atomic_load_explicit(&allowance, memory_order_relaxed);
    while (left > 0)
        if (atomic_compare_exchange_weak(&allowance, &left, left - 1)) return false;
    return left == 0;
}
#else
static bool refused(void) { return false; }
#endif

bool sp_size_mul(size_t a, size_t b, size_t *out) {
    size_t product;
    if (__builtin_mul_overflow(a, b, &product)) return false;
    *out = product;
    return true;
}

bool sp_size_add(size_t a, size_t b, size_t *out) {
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return false;
    *out = sum;
    return true;
}

void *sp_alloc(size_t count, size_t size) { return sp_alloc_aligned(SP_ALIGN, count, size); }

void *sp_alloc_aligned(size_t align, size_t count, size_t size) {
    SP_ASSERT(align >= SP_ALIGN && (align & (align - 1)) == 0);
    size_t bytes;
    void *block = NULL;
    if (!sp_size_mul(count, size, &bytes) || bytes > PTRDIFF_MAX || refused() ||
        posix_memalign(&block, align, bytes > 0 ? bytes : 1) != 0) {
        return NULL;
    }
    return memset(block, 0, bytes);
}

void sp_free(void *block) { free(block); }

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

sp_status sp_region_reserve(sp_region *region, size_t bytes) {
    *region = (sp_region){NULL, 0};
    size_t page = page_size(), padded;
    if (bytes == 0 || !sp_size_add(bytes, page - 1, &padded) || padded > PTRDIFF_MAX || refused()) return SP_ERR_MEMORY;
    padded -= padded % page;
    void *base = mmap(NULL, padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return SP_ERR_MEMORY;
    *region = (sp_region){base, padded};
    return SP_OK;
}

sp_status sp_region_discard(sp_region *region, size_t offset, size_t bytes) {
    size_t end, page = page_size();
    if (!sp_size_add(offset, bytes, &end) || end > region->bytes) return SP_ERR_ARGUMENT;
    char *base = region->base;
    size_t first = offset + (page - offset % page) % page;
    size_t last = end - end % page;
    if (first >= last) {  // no whole page inside
        memset(base + offset, 0, bytes);
        return SP_OK;
    }
    memset(base + offset, 0, first - offset);
    memset(base + last, 0, end - last);
    // A fresh mapping over the old one: the one way that promises zeros on every system.
    void *fresh = mmap(base + first, last - first, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return fresh == MAP_FAILED ? SP_ERR_SYSTEM : SP_OK;
}

void sp_region_release(sp_region *region) {
    if (region->base != NULL) munmap(region->base, region->bytes);
    *region = (sp_region){NULL, 0};
}
