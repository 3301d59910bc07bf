// SPDX-License-Identifier: Apache-2.0
// Block maxima in one pass; the first block that holds the overall maximum is then searched for its place.
// FMAX and FMAXV keep any NaN they meet, so a block's maximum is also its test for NaN.
#include <math.h>

#include "kernel/declare.h"
#include "kernel/simd/neon.h"

enum { BLOCK = 512 };  // values of a block

// Maximum of up to BLOCK values; NaN if there is one among them.
static inline float block_max(const float *x, size_t n) {
    const float32x4_t least = vdupq_n_f32(-INFINITY);
    sp_f32x16 m = {{least, least, least, least}};
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const sp_f32x16 v = sp_load16_neon(x + i);
        SP_UNROLL
        for (int j = 0; j < 4; j++) m.q[j] = vmaxq_f32(m.q[j], v.q[j]);
    }
    for (; i < n; i++) m.q[0] = vmaxq_f32(m.q[0], vdupq_n_f32(x[i]));
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(m.q[0], m.q[1]), vmaxq_f32(m.q[2], m.q[3])));
}

static inline size_t find(const float *x, size_t n, float value) {
    const float32x4_t want = vdupq_n_f32(value);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const sp_f32x16 v = sp_load16_neon(x + i);
        const uint32x4_t low = vorrq_u32(vceqq_f32(v.q[0], want), vceqq_f32(v.q[1], want));
        const uint32x4_t high = vorrq_u32(vceqq_f32(v.q[2], want), vceqq_f32(v.q[3], want));
        if (vmaxvq_u32(vorrq_u32(low, high))) break;
    }
    while (i < n && x[i] != value) i++;
    return i;
}

int64_t sp_argmax_i64_f32_1x16_neon(const float *x, size_t n) {
    float best = -INFINITY;
    size_t start = 0;
    for (size_t i = 0; i < n; i += BLOCK) {
        const float max = block_max(x + i, n - i < BLOCK ? n - i : BLOCK);
        if (max != max) return -1;
        if (max > best) {
            best = max;
            start = i;
        }
    }
    return (int64_t)(start + find(x + start, n - start, best));
}
