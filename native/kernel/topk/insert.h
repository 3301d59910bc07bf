// SPDX-License-Identifier: Apache-2.0
// The definition of top-k: each value is inserted behind all that are not smaller, so equals keep ascending order.
// Costs n comparisons and about k * ln(n / k) insertions for values in random order; the vector kernels fall back to it
// where their bound does not help (short rows, large k, masses of equal values).
#pragma once

#include <stddef.h>
#include <stdint.h>

static inline void sp_topk_insert(int32_t *index, float *value, const float *x, size_t n, size_t k) {
    size_t held = 0;
    for (size_t i = 0; i < n; i++) {
        if (held == k && !(x[i] > value[k - 1])) continue;
        size_t at = held < k ? held++ : k - 1;
        for (; at > 0 && x[i] > value[at - 1]; at--) {
            value[at] = value[at - 1];
            index[at] = index[at - 1];
        }
        value[at] = x[i];
        index[at] = (int32_t)i;
    }
}
