// SPDX-License-Identifier: Apache-2.0
// The definition of top-k: the k largest values in descending order, equals in ascending index order.
#include "kernel/declare.h"
#include "kernel/topk/insert.h"

void sp_topk_f32_f32_1x1_ref(int32_t *index, float *value, const float *x, size_t n, size_t k) {
    sp_topk_insert(index, value, x, n, k);
}
