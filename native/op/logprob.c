// SPDX-License-Identifier: Apache-2.0
#include "op/logprob.h"

#include <math.h>
#include <string.h>

#include "op/mass.h"

#define LN2 0x1.62e42fefa39efp-1

// ln(x) of a normal number x > 0: x = m * 2^e with m around 1, ln(m) = 2 artanh(t), t = (m - 1) / (m + 1).
// |t| < 0.172, so the series t + t^3/3 + t^5/5 + ... is cut at t^21 with an error below 1e-18.
static double natural_log(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffu) | 0x3ff0000000000000u;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        e++;
    }
    const double t = (m - 1.0) / (m + 1.0);
    const double square = t * t;
    double series = 0.0;
    for (int n = 21; n >= 1; n -= 2) series = series * square + 1.0 / n;
    return e * LN2 + 2.0 * t * series;
}

sp_status sp_logprob(const sp_kernel_set *kernels, const float *logits, size_t n, size_t id, double *out) {
    if (id >= n) return SP_ERR_ARGUMENT;
    const int64_t best = ((sp_argmax_fn)kernels->k[SP_SLOT_ARGMAX]->fn)(logits, n);
    if (best < 0 || !isfinite(logits[best])) return SP_ERR_NUMERIC;
    const float peak = logits[best];
    const double total = sp_mass(kernels, logits, n, peak, SP_LOG2E);
    *out = ((double)logits[id] - (double)peak) - natural_log(total);
    return SP_OK;
}
