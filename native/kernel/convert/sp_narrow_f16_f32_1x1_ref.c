// SPDX-License-Identifier: Apache-2.0
// The definition of float32 -> float16 into a strided destination (a key's column in its page).
#include "base/dtype.h"
#include "kernel/declare.h"

void sp_narrow_f16_f32_1x1_ref(uint16_t *dst, size_t stride, const float *src, size_t n) {
    for (size_t i = 0; i < n; i++) dst[i * stride] = sp_f32_to_f16(src[i]);
}
