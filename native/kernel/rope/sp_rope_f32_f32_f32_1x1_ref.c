// SPDX-License-Identifier: Apache-2.0
// The definition of the rotary embedding in its half-split form: element i turns with element i + half.
#include <math.h>

#include "kernel/declare.h"

void sp_rope_f32_f32_f32_1x1_ref(float *y, const float *x, const float *c, const float *s, size_t half, float scale) {
    for (size_t i = 0; i < half; i++) {
        const float a = x[i];
        const float b = x[i + half];
        y[i] = fmaf(a, c[i], -(b * s[i])) * scale;
        y[i + half] = fmaf(b, c[i], a * s[i]) * scale;
    }
}
