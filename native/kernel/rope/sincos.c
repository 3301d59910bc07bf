// SPDX-License-Identifier: Apache-2.0
// Sine and cosine in double precision by IEEE operations alone, rounded once to float32.
//
// Reduction: k = rint(x * 2/pi), r = x - k * pi/2 with pi/2 = HIGH + LOW. HIGH has 53 bits; the fma makes the first
// difference exact, because it is a multiple of 2^-52 (or of x's own last bit) below 1. LOW then corrects it: what is
// left of the error is about k * 2^-107, far below a float's last bit even where r almost vanishes.
// Polynomials: Taylor series on |r| <= pi/4, to r^15 and r^16; the first term left out is below 5e-17.
#include "kernel/rope/sincos.h"

#include <math.h>

#define TWO_OVER_PI 0x1.45f306dc9c883p-1
#define HALF_PI_HIGH 0x1.921fb54442d18p+0
#define HALF_PI_LOW 0x1.1a62633145c07p-54

// Sine and cosine of |r| <= pi/4; z = r * r.
static double sine(double r, double z) {
    double p = -1.0 / 1307674368000.0;  // 1/15!
    p = p * z + 1.0 / 6227020800.0;     // 1/13!
    p = p * z - 1.0 / 39916800.0;       // 1/11!
    p = p * z + 1.0 / 362880.0;         // 1/9!
    p = p * z - 1.0 / 5040.0;           // 1/7!
    p = p * z + 1.0 / 120.0;            // 1/5!
    p = p * z - 1.0 / 6.0;              // 1/3!
    return r + r * z * p;
}

static double cosine(double z) {
    double p = 1.0 / 20922789888000.0;  // 1/16!
    p = p * z - 1.0 / 87178291200.0;    // 1/14!
    p = p * z + 1.0 / 479001600.0;      // 1/12!
    p = p * z - 1.0 / 3628800.0;        // 1/10!
    p = p * z + 1.0 / 40320.0;          // 1/8!
    p = p * z - 1.0 / 720.0;            // 1/6!
    p = p * z + 1.0 / 24.0;             // 1/4!
    return 1.0 - z * 0.5 + z * z * p;
}

void sp_rope_table(float *c, float *s, const float *inv_freq, size_t half, int32_t position) {
    for (size_t i = 0; i < half; i++) {
        const float angle = (float)position * inv_freq[i];
        const double k = rint(angle * TWO_OVER_PI);
        const double r = fma(-k, HALF_PI_LOW, fma(-k, HALF_PI_HIGH, angle));
        const double z = r * r;
        const double sin_r = sine(r, z);
        const double cos_r = cosine(z);
        // A quarter turn maps (cos, sin) to (-sin, cos).
        const unsigned quarter = (unsigned)((int64_t)k & 3);
        const double cos_x = quarter & 1 ? sin_r : cos_r;
        const double sin_x = quarter & 1 ? cos_r : sin_r;
        c[i] = (float)(quarter == 1 || quarter == 2 ? -cos_x : cos_x);
        s[i] = (float)(quarter >= 2 ? -sin_x : sin_x);
    }
}
