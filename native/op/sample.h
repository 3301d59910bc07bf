// SPDX-License-Identifier: Apache-2.0
// From a row of logits to one token. Sampling is part of the arithmetic: same logits, parameters, seed and draw give
// the same token on every machine, at every tier, whoever else is in the batch.
//
// In this order:
//  1. bias: logit += bias of its token (-infinity forbids it)
//  2. penalties on tokens that occurred: repetition on all of them (a positive logit is divided, any other multiplied),
//     then, for tokens of the answer, logit -= count * frequency + presence
//  3. temperature 0: the largest logit, the lowest index among equals. Done.
//  4. top-k: the k largest, equals by ascending index. This is the order of candidates from here on.
//  5. weights 2^((logit - largest) * log2(e) / temperature) (op/mass.h); the largest weighs 1
//  6. top-p: the shortest prefix whose weights reach p of the total, at least one token
//  7. min-p: the prefix whose weights are at least min_p
//  8. the first candidate whose cumulative weight exceeds u * total of the prefix, u the Philox number of (seed, draw)
// Totals of a prefix are added in double in candidate order. Where top-k keeps the whole vocabulary its total is
// sp_mass, in index order, so that no full sort is needed.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "kernel/kernel.h"

typedef struct sp_sample_args {
    const sp_kernel_set *kernels;
    const float *logits;
    size_t vocab;  // 1..2^31 - 1
    float temperature;  // >= 0
    size_t top_k;  // 0 or >= vocab: all
    float top_p;  // 1 or more: all
    float min_p;  // 0 or less: all
    float repetition;  // > 0; 1 is off
    float presence, frequency;
    const int32_t *recent;  // tokens that occurred, oldest first; may repeat
    size_t recent_count;
    size_t answer_count;  // of these, how many belong to the answer: the last ones
    const int32_t *bias_ids;
    const float *bias_values;
    size_t bias_count;
    uint64_t seed, draw;
    void *scratch;  // sp_sample_scratch_bytes(vocab), aligned to 4 bytes; contents do not matter
} sp_sample_args;

size_t sp_sample_scratch_bytes(size_t vocab);

// Draws *token. Allocates nothing, changes no logits.
// SP_ERR_NUMERIC: a logit is NaN, or the largest is not finite (all forbidden, or overflow).
// SP_ERR_ARGUMENT: a parameter or token id is out of range.
sp_status sp_sample(const sp_sample_args *args, int32_t *token);
