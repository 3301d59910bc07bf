// SPDX-License-Identifier: Apache-2.0
// A full descending sort of a row, for the rare draw that needs more than the top-k kernel's few hundred values.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Writes the indices of n NaN-free values to `ids`, largest value first, equals in ascending order.
// `keys` and `ids` have room for 2 * n elements each; the second half is scratch. n < 2^31.
void sp_order_descending(const float *x, size_t n, int32_t *ids, uint32_t *keys);
