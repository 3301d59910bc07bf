// SPDX-License-Identifier: Apache-2.0
// Read bandwidth: every thread sums its own stretch of memory, front to back.
//
// Plain 64-bit additions, eight chains: even as the baseline's 128-bit loads they outrun any memory, and the same
// code serves every machine. One stream per thread: on Zen 4 two or four streams reach half of it. Huge pages where
// the system gives them, since the limit sought is the memory's, not the page walker's.
#include <sys/mman.h>

#include "base/memory.h"
#include "probe/probe.h"

enum { LANES = 8, ROUNDS = 7 };

typedef struct stretch {
    const uint64_t *base;
    size_t words;    // per thread; a multiple of LANES
    uint64_t *sums;  // one per thread, SP_LINE apart: keeps the loads from being optimised away
} stretch;

static uint64_t read_all(void *state, unsigned index) {
    const stretch *all = state;
    const uint64_t *base = all->base + (size_t)index * all->words;
    uint64_t lane[LANES] = {0};
    for (size_t i = 0; i < all->words; i += LANES)
        for (size_t j = 0; j < LANES; j++) lane[j] += base[i + j];
    uint64_t sum = 0;
    for (size_t j = 0; j < LANES; j++) sum += lane[j];
    all->sums[(size_t)index * SP_LINE / sizeof(uint64_t)] = sum;
    return all->words * sizeof(uint64_t);
}

static sp_status best_of_rounds(unsigned threads, stretch *memory, double *bytes_per_second) {
    *bytes_per_second = 0.0;
    for (int round = 0; round < ROUNDS; round++) {
        double rate;
        sp_status status = sp_probe_round(threads, read_all, memory, &rate);
        if (status != SP_OK) return status;
        *bytes_per_second = rate > *bytes_per_second ? rate : *bytes_per_second;
    }
    return SP_OK;
}

sp_status sp_probe_read_bandwidth(unsigned threads, size_t bytes, double *bytes_per_second) {
    if (threads < 1 || threads > SP_PROBE_THREADS) return SP_ERR_ARGUMENT;
    size_t words = bytes / threads / sizeof(uint64_t) / LANES * LANES;
    if (words == 0) return SP_ERR_ARGUMENT;
    sp_region region;
    sp_status status = sp_region_reserve(&region, words * threads * sizeof(uint64_t));
    if (status != SP_OK) return status;
#ifdef MADV_HUGEPAGE
    (void)madvise(region.base, region.bytes, MADV_HUGEPAGE);  // a wish; small pages cost a tenth
#endif
    uint64_t *base = region.base;
    for (size_t i = 0; i < words * threads; i++) base[i] = i;  // untouched pages all read the same zero page
    uint64_t *sums = sp_alloc(threads, SP_LINE);
    status = sums == NULL ? SP_ERR_MEMORY : best_of_rounds(threads, &(stretch){base, words, sums}, bytes_per_second);
    sp_free(sums);
    sp_region_release(&region);
    return status;
}
