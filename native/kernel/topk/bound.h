// SPDX-License-Identifier: Apache-2.0
// Top-k in two passes over the row, shared by the vector kernels, which supply the passes.
//
// 1. The row is cut into groups of `depth` values and each group's maximum is taken. The k-th largest maximum is a
//    lower bound of the k-th largest value: k groups reach it, so at least k values do.
// 2. All values that reach the bound are collected with their indices. With three groups for each of the k there are
//    about 1.2 k of them, whatever the distribution, as long as values are spread over the row at random.
// Then the few candidates are sorted. Too many candidates (masses of equal values) or too few groups: insertion.
//
// A candidate is one integer that orders as wanted: larger is a larger value, or the same value at a lower index.
#pragma once

#include "base/dtype.h"
#include "kernel/topk/insert.h"

enum {
    SP_TOPK_SHORT = 1024,   // shorter rows are inserted
    SP_TOPK_LARGE = 1024,   // larger k are inserted
    SP_TOPK_ROOM = 2048,    // candidates
    SP_TOPK_GROUPS = 4096,  // maxima
    SP_TOPK_DEPTH = 64,     // of a group, where groups are plenty
};

// Depth of the groups for a row, 16 groups side by side; 0 if insertion is the better way.
static inline size_t sp_topk_depth(size_t n, size_t k) {
    if (n < SP_TOPK_SHORT || k > SP_TOPK_LARGE) return 0;
    size_t depth = n / (3 * k);
    if (depth > SP_TOPK_DEPTH) depth = SP_TOPK_DEPTH;
    if (depth < 2) return 0;
    const size_t least = n / SP_TOPK_GROUPS + 1;
    if (depth < least) depth = least;
    return n / (16 * depth) * 16 >= k ? depth : 0;
}

static inline uint64_t sp_topk_candidate(float value, size_t index) {
    const uint32_t bits = sp_f32_bits(value + 0.0f);  // one zero
    const uint32_t rank = bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
    return (uint64_t)rank << 32 | (uint32_t)~(uint32_t)index;
}

// The k-th largest of n values (Hoare's selection); reorders them.
static inline float sp_topk_kth(float *v, size_t n, size_t k) {
    size_t low = 0, high = n - 1;
    const size_t want = k - 1;
    while (low < high) {
        const float pivot = v[low + (high - low) / 2];
        size_t i = low, j = high;
        for (;;) {
            while (v[i] > pivot) i++;
            while (v[j] < pivot) j--;
            if (i >= j) break;
            const float swap = v[i];
            v[i++] = v[j];
            v[j--] = swap;
        }
        if (want <= j) high = j;
        else low = j + 1;
    }
    return v[want];
}

// Merge sort, largest first; returns where the result lies: `keys` or `spare`.
static inline uint64_t *sp_topk_sort(uint64_t *keys, uint64_t *spare, size_t n) {
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t start = 0; start < n; start += 2 * width) {
            size_t i = start, j = start + width < n ? start + width : n;
            const size_t middle = j, end = j + width < n ? j + width : n;
            for (size_t out = start; out < end; out++) {
                const bool first = j >= end || (i < middle && keys[i] > keys[j]);
                spare[out] = keys[first ? i : j];
                i += first;
                j += !first;
            }
        }
        uint64_t *swap = keys;
        keys = spare;
        spare = swap;
    }
    return keys;
}

// Sorts the candidates and writes the first k.
static inline void sp_topk_finish(int32_t *index, float *value, const float *x, uint64_t *keys, size_t count,
                                  size_t k) {
    uint64_t spare[SP_TOPK_ROOM];
    const uint64_t *sorted = sp_topk_sort(keys, spare, count);
    for (size_t i = 0; i < k; i++) {
        index[i] = (int32_t)~(uint32_t)sorted[i];
        value[i] = x[index[i]];
    }
}

// A kernel's passes: `maxima` writes the maxima of the groups and returns their number; `collect` writes the candidates
// that reach `bound` and returns theirs, more than SP_TOPK_ROOM if they did not fit.
typedef size_t (*sp_topk_maxima_fn)(float *maxima, const float *x, size_t n, size_t depth);
typedef size_t (*sp_topk_collect_fn)(uint64_t *keys, const float *x, size_t n, float bound);

// Top-k by these passes where they pay, else by insertion. Inlined into the kernel, passes and all.
static inline __attribute__((always_inline)) void sp_topk_by(sp_topk_maxima_fn maxima_of, sp_topk_collect_fn collect,
                                                             int32_t *index, float *value, const float *x, size_t n,
                                                             size_t k) {
    const size_t depth = sp_topk_depth(n, k);
    if (depth != 0) {
        float maxima[SP_TOPK_GROUPS];
        uint64_t keys[SP_TOPK_ROOM];
        const size_t groups = maxima_of(maxima, x, n, depth);
        const size_t count = collect(keys, x, n, sp_topk_kth(maxima, groups, k));
        if (count <= SP_TOPK_ROOM) {
            sp_topk_finish(index, value, x, keys, count, k);
            return;
        }
    }
    sp_topk_insert(index, value, x, n, k);
}

// Appends candidates i + b for every bit b of `hits`; returns the new count, SP_TOPK_ROOM + 1 when they do not fit.
static inline size_t sp_topk_append(uint64_t *keys, size_t count, const float *x, size_t i, unsigned hits) {
    for (; hits; hits &= hits - 1) {
        if (count == SP_TOPK_ROOM) return count + 1;
        const size_t at = i + (size_t)__builtin_ctz(hits);
        keys[count++] = sp_topk_candidate(x[at], at);
    }
    return count;
}
