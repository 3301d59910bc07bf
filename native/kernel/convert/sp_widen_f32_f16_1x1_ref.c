// SPDX-License-Identifier: Apache-2.0
// The definition of float16 -> float32, a row.
#include "base/dtype.h"
#include "kernel/declare.h"

void sp_widen_f32_f16_1x1_ref(float *dst, const uint16_t *src, size_t n) {
    for (size_t i = 0; i < n; i++) dst[i] = sp_f16_to_f32(src[i]);
}
