// SPDX-License-Identifier: Apache-2.0
// The definition of argmax: the lowest index of the largest value; -1 if there is a NaN.
#include "kernel/declare.h"

int64_t sp_argmax_i64_f32_1x1_ref(const float *x, size_t n) {
    size_t best = 0;
    for (size_t i = 0; i < n; i++) {
        if (x[i] != x[i]) return -1;
        if (x[i] > x[best]) best = i;
    }
    return (int64_t)best;
}
