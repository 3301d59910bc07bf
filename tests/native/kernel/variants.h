// SPDX-License-Identifier: Apache-2.0
// What the kernel tests share: every variant that this machine can run against
// its slot's reference, and inputs that find the edges of float arithmetic.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/kernel.h"

// Compares one variant with the reference on many cases; returns how many it
// ran.
typedef size_t (*sp_compare)(void (*reference)(void), void (*variant)(void));

// Calls `compare` for every built kernel of the slot that this machine
// supports, the reference itself included. Fails if a built and supported tier
// has no kernel in the slot, or if `compare` ran none of its cases.
void sp_each_variant(sp_slot slot, sp_compare compare);

// Kinds of input. Every kind is finite but the last.
typedef enum sp_fill {
    SP_FILL_NORMAL,   // -4..4
    SP_FILL_WIDE,     // exponents of -30..30
    SP_FILL_ZEROS,    // +0 and -0
    SP_FILL_EQUAL,    // few different values, zeros of both signs among them
    SP_FILL_DENORMAL, // below the smallest normal number
    SP_FILL_HUGE,     // next to the largest
    SP_FILL_BITS,     // any finite bit pattern
    SP_FILL_SPECIAL,  // -4..4 with an infinity or NaN here and there
    SP_FILL_COUNT
} sp_fill;

void sp_fill_floats(float *x, size_t n, sp_fill fill, uint64_t seed);

// A value in [low, high).
float sp_random_float(uint64_t *state, float low, float high);
