// SPDX-License-Identifier: Apache-2.0
// The table of rotary embedding: cosines and sines of one position, the same bits on every machine.
#pragma once

#include <stddef.h>
#include <stdint.h>

// For i < half: the angle is the float32 product (float)position * inv_freq[i] (as Hugging Face computes it),
// c[i] and s[i] its cosine and sine, within one unit in the last place for angles up to 2^20 (nearly always the
// nearest float). inv_freq is finite; position is not negative.
void sp_rope_table(float *c, float *s, const float *inv_freq, size_t half, int32_t position);
