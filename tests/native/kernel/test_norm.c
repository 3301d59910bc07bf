// SPDX-License-Identifier: Apache-2.0
// RMS norm: every tier equals the reference, the reference equals the formula
// in double.
#include <math.h>
#include <string.h>

#include "kernel/variants.h"
#include "test.h"

enum { LONGEST = 4096, GUARD = 16 };

static const size_t lengths[] = {8, 16, 24, 32, 40, 64, 96, 160, 576, 1000, 2048, LONGEST};

static size_t compare(void (*reference)(void), void (*variant)(void)) {
    static float x[LONGEST + 1], w[LONGEST], got[LONGEST + GUARD], want[LONGEST + GUARD];
    size_t cases = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (int fill = 0; fill < SP_FILL_COUNT; fill++) {
            const size_t n = lengths[i];
            sp_test_label("n=%zu fill=%d", n, fill);
            sp_fill_floats(x, LONGEST + 1, (sp_fill)fill, i);
            sp_fill_floats(w, LONGEST, SP_FILL_NORMAL, i + 100);
            memset(got, 0x55, sizeof got);
            memset(want, 0x55, sizeof want);
            ((sp_rmsnorm_fn)reference)(want, x + 1, w, n, 1e-5f);
            ((sp_rmsnorm_fn)variant)(got, x + 1, w, n, 1e-5f);
            SP_CHECK_FLOATS(got, want, n + GUARD);
            ((sp_rmsnorm_fn)variant)(x + 1, x + 1, w, n, 1e-5f); // in place
            SP_CHECK_FLOATS(x + 1, want, n);
            cases++;
        }
    }
    return cases;
}

SP_TEST(kernel_rmsnorm_tiers_equal) { sp_each_variant(SP_SLOT_RMSNORM, compare); }

static size_t formula(void (*reference)(void), void (*variant)(void)) {
    (void)reference;
    float x[576], w[576], y[576];
    sp_fill_floats(x, 576, SP_FILL_NORMAL, 1);
    sp_fill_floats(w, 576, SP_FILL_NORMAL, 2);
    ((sp_rmsnorm_fn)variant)(y, x, w, 576, 1e-5f);
    double squares = 0.0;
    for (int i = 0; i < 576; i++) squares += (double)x[i] * x[i];
    const double r = 1.0 / sqrt(squares / 576 + 1e-5);
    for (int i = 0; i < 576; i++) SP_CHECK(fabs(y[i] - x[i] * r * w[i]) <= 1e-6 * fabs(x[i] * r * w[i]) + 1e-30);
    return 1;
}

SP_TEST(kernel_rmsnorm_is_the_formula) { sp_each_variant(SP_SLOT_RMSNORM, formula); }
