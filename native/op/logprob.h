// SPDX-License-Identifier: Apache-2.0
// The natural logarithm of a token's probability, for perplexity and for reports.
#pragma once

#include "base/status.h"
#include "kernel/kernel.h"

// *out = ln(softmax(logits)[id]), n > id logits; within 1e-6 of the exact value, the same bits on every machine.
// -infinity for a forbidden token. SP_ERR_NUMERIC if a logit is NaN or the largest is not finite.
sp_status sp_logprob(const sp_kernel_set *kernels, const float *logits, size_t n, size_t id, double *out);
