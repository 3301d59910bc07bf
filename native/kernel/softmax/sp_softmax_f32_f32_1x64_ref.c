// SPDX-License-Identifier: Apache-2.0
// The definition of the softmax of one block of attention scores (in units of log2): maximum, 2^(s - max), sum.
#include <math.h>

#include "kernel/declare.h"
#include "kernel/simd/lanes.h"
#include "kernel/softmax/exp2.h"

void sp_softmax_f32_f32_1x64_ref(const sp_softmax_args *args) {
    for (size_t r = 0; r < args->rows; r++) {
        float *s = args->s + r * args->ld;
        const size_t visible = args->visible[r];
        float max = -INFINITY;
        for (size_t i = 0; i < visible; i++) max = s[i] > max ? s[i] : max;
        max += 0.0f;  // one zero, whatever the order of comparison
        float lanes[16] = {0};
        for (size_t i = 0; i < SP_KEYS; i++) {
            s[i] = i < visible ? sp_exp2(s[i] - max) : 0.0f;
            lanes[i % 16] += s[i];
        }
        args->max[r] = max;
        args->sum[r] = sp_lanes_sum(lanes);
    }
}
