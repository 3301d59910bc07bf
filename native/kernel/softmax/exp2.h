// SPDX-License-Identifier: Apache-2.0
// exp2 of the engine: one polynomial, shared by softmax, merge, silu and the sampler, on every instruction set.
//
// x < -126 gives +0; x > 127 gives exp2(127); else n = rint(x), f = x - n (exact, |f| <= 1/2), 2^n * P(f).
// P is the minimax polynomial of degree 6 for the relative error on [-1/2, 1/2] under P(0) = 1, its coefficients
// rounded to float32 one after the other (each time the remaining ones were fitted again). Evaluated as written here,
// in Horner form with fma, it is within 6.8e-8 of 2^f, 0.8 units in the last place, and exact for integers.
// No result is denormal (n = -126 comes with f >= 0, so P >= 1) and none overflows, so 2^n * P is P with n added to
// its exponent: an integer addition of n << 23.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#define SP_EXP2_MIN (-126.0f)
#define SP_EXP2_MAX 127.0f

#define SP_EXP2_C1 0x1.62e430p-1f
#define SP_EXP2_C2 0x1.ebfbdcp-3f
#define SP_EXP2_C3 0x1.c6af7cp-5f
#define SP_EXP2_C4 0x1.3b2de0p-7f
#define SP_EXP2_C5 0x1.5f082ep-10f
#define SP_EXP2_C6 0x1.416b52p-13f

#define SP_LOG2E 0x1.715476p+0f  // log2(e) rounded to float32

// 2^x; NaN gives NaN.
static inline float sp_exp2(float x) {
    if (x < SP_EXP2_MIN) return 0.0f;
    if (x != x) return x;
    if (x > SP_EXP2_MAX) x = SP_EXP2_MAX;
    const float n = rintf(x);
    const float f = x - n;
    float p = SP_EXP2_C6;
    p = fmaf(p, f, SP_EXP2_C5);
    p = fmaf(p, f, SP_EXP2_C4);
    p = fmaf(p, f, SP_EXP2_C3);
    p = fmaf(p, f, SP_EXP2_C2);
    p = fmaf(p, f, SP_EXP2_C1);
    p = fmaf(p, f, 1.0f);
    uint32_t bits;
    memcpy(&bits, &p, sizeof bits);
    bits += (uint32_t)(int32_t)n << 23;
    memcpy(&p, &bits, sizeof p);
    return p;
}
