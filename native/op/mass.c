// SPDX-License-Identifier: Apache-2.0
#include "op/mass.h"

enum { ROWS = 8 };  // blocks handed to the kernel at once

double sp_mass(const sp_kernel_set *kernels, const float *logits, size_t n, float peak, float scale) {
    const sp_softmax_fn softmax = (sp_softmax_fn)kernels->k[SP_SLOT_SOFTMAX]->fn;
    float z[ROWS * SP_KEYS], max[ROWS], sum[ROWS];
    uint8_t visible[ROWS];
    double total = 0.0;
    for (size_t start = 0; start < n; start += ROWS * SP_KEYS) {
        const size_t count = n - start < ROWS * SP_KEYS ? n - start : ROWS * SP_KEYS;
        const size_t rows = (count + SP_KEYS - 1) / SP_KEYS;
        for (size_t i = 0; i < count; i++) z[i] = sp_mass_exponent(logits[start + i], peak, scale);
        for (size_t i = count; i < rows * SP_KEYS; i++) z[i] = SP_MASS_LEAST;
        for (size_t r = 0; r < rows; r++) visible[r] = SP_KEYS;
        visible[rows - 1] = (uint8_t)(count - (rows - 1) * SP_KEYS);
        softmax(&(sp_softmax_args){z, SP_KEYS, rows, visible, max, sum});
        for (size_t r = 0; r < rows; r++) total += (double)sum[r] * (double)sp_exp2(max[r]);
    }
    return total;
}
