// SPDX-License-Identifier: Apache-2.0
// The definition of the last step of attention: division by the sum of weights.
#include "kernel/declare.h"

void sp_finish_f32_f32_f32_1x1_ref(float *y, const float *o, float l, size_t d) {
    for (size_t i = 0; i < d; i++) y[i] = o[i] / l + 0.0f;
}
