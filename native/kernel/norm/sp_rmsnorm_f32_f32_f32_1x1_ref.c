// SPDX-License-Identifier: Apache-2.0
// The definition of the root-mean-square norm: y = x / sqrt(mean(x^2) + eps) * w, the mean over 16 lanes.
#include <math.h>

#include "kernel/declare.h"
#include "kernel/simd/lanes.h"

void sp_rmsnorm_f32_f32_f32_1x1_ref(float *y, const float *x, const float *w, size_t n, float eps) {
    float lanes[16] = {0};
    for (size_t i = 0; i < n; i++) lanes[i % 16] = fmaf(x[i], x[i], lanes[i % 16]);
    const float r = 1.0f / sqrtf(sp_lanes_sum(lanes) / (float)n + eps);
    for (size_t i = 0; i < n; i++) y[i] = x[i] * r * w[i];
}
