// SPDX-License-Identifier: Apache-2.0
// The definition of SwiGLU: silu(gate) * up.
#include "kernel/declare.h"
#include "kernel/softmax/exp2.h"

void sp_swiglu_f32_f32_f32_1x1_ref(float *y, const float *g, const float *u, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = g[i] / (1.0f + sp_exp2(-g[i] * SP_LOG2E)) * u[i];
}
