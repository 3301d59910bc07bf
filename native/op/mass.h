// SPDX-License-Identifier: Apache-2.0
// Softmax over a row of logits, without writing it: what the sampler and log-probabilities need of it.
//
// The exponent of a logit, in units of log2, is z = max((logit - peak) * scale, -1e30): log2(e) / temperature as scale,
// the peak subtracted first, so that no temperature overflows; a forbidden logit (-infinity) weighs nothing.
#pragma once

#include <float.h>

#include "kernel/kernel.h"
#include "kernel/softmax/exp2.h"

#define SP_MASS_LEAST (-1e30f)

// log2(e) / temperature, kept finite: times a difference of 0 it has to stay 0.
static inline float sp_mass_scale(float temperature) {
    const float scale = SP_LOG2E / temperature;
    return scale < FLT_MAX ? scale : FLT_MAX;
}

static inline float sp_mass_exponent(float logit, float peak, float scale) {
    const float z = (logit - peak) * scale;
    return z > SP_MASS_LEAST ? z : SP_MASS_LEAST;
}

// Sum of 2^z over n logits whose maximum is `peak`, finite. Blocks of SP_KEYS logits go through the softmax kernel
// (16-lane sums relative to the block's maximum); the blocks are added in double in ascending order.
double sp_mass(const sp_kernel_set *kernels, const float *logits, size_t n, float peak, float scale);
