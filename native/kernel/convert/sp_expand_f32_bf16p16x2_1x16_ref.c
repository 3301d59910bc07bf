// SPDX-License-Identifier: Apache-2.0
// The definition of the expansion of a bfloat16 weight panel: [k/2][16][2] -> float32 [k][16].
#include "base/dtype.h"
#include "kernel/declare.h"

void sp_expand_f32_bf16p16x2_1x16_ref(float *dst, const uint16_t *src, size_t k) {
    for (size_t i = 0; i < k; i++)
        for (size_t r = 0; r < 16; r++) dst[i * 16 + r] = sp_bf16_to_f32(src[i / 2 * 32 + r * 2 + i % 2]);
}
