// SPDX-License-Identifier: Apache-2.0
// SwiGLU and residual addition: every tier equals the reference, also in place.
#include <math.h>
#include <string.h>

#include "kernel/variants.h"
#include "test.h"

enum { LONGEST = 1544, GUARD = 16 };

static const size_t lengths[] = {8, 16, 24, 40, 64, 96, 576, 1536, LONGEST};

static size_t compare_swiglu(void (*reference)(void), void (*variant)(void)) {
    static float g[LONGEST + GUARD], u[LONGEST + GUARD], got[LONGEST + GUARD], want[LONGEST + GUARD];
    size_t cases = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (int fill = 0; fill < SP_FILL_COUNT; fill++) {
            const size_t n = lengths[i];
            sp_test_label("n=%zu fill=%d", n, fill);
            sp_fill_floats(g, LONGEST + GUARD, (sp_fill)fill, i);
            sp_fill_floats(u, LONGEST + GUARD, SP_FILL_NORMAL, i + 100);
            memset(got, 0x55, sizeof got);
            memset(want, 0x55, sizeof want);
            ((sp_swiglu_fn)reference)(want, g, u, n);
            ((sp_swiglu_fn)variant)(got, g, u, n);
            SP_CHECK_FLOATS(got, want, n + GUARD);
            memcpy(got, u, sizeof got);
            ((sp_swiglu_fn)variant)(got, g, got, n);
            SP_CHECK_FLOATS(got, want, n);
            ((sp_swiglu_fn)variant)(g, g, u, n);
            SP_CHECK_FLOATS(g, want, n);
            cases++;
        }
    }
    return cases;
}

SP_TEST(kernel_swiglu_tiers_equal) { sp_each_variant(SP_SLOT_SWIGLU, compare_swiglu); }

static size_t formula(void (*reference)(void), void (*variant)(void)) {
    (void)reference;
    enum { COUNT = 4000 };
    static float g[COUNT], u[COUNT], y[COUNT];
    for (int i = 0; i < COUNT; i++) {
        g[i] = (float)(i - COUNT / 2) * 0.05f; // -100..100
        u[i] = 1.0f;
    }
    ((sp_swiglu_fn)variant)(y, g, u, COUNT);
    for (int i = 0; i < COUNT; i++) {
        // Below -87 exp2 is limited to 2^127: silu is then about -1e-37 instead of
        // less.
        const double want = g[i] / (1.0 + exp(-(double)g[i]));
        sp_test_label("g=%g", (double)g[i]);
        SP_CHECK(fabs(y[i] - want) <= 1e-5 * fabs(want) + 1e-36);
    }
    return 1;
}

SP_TEST(kernel_swiglu_is_the_formula) { sp_each_variant(SP_SLOT_SWIGLU, formula); }

static size_t compare_add(void (*reference)(void), void (*variant)(void)) {
    static float x[LONGEST + GUARD], y[LONGEST], got[LONGEST + GUARD];
    size_t cases = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (int fill = 0; fill < SP_FILL_COUNT; fill++) {
            const size_t n = lengths[i];
            sp_test_label("n=%zu fill=%d", n, fill);
            sp_fill_floats(x, LONGEST + GUARD, (sp_fill)fill, i);
            sp_fill_floats(y, LONGEST, (sp_fill)fill, i + 100);
            memcpy(got, x, sizeof got);
            ((sp_add_fn)variant)(got, y, n);
            ((sp_add_fn)reference)(x, y, n);
            SP_CHECK_FLOATS(got, x, n + GUARD);
            cases++;
        }
    }
    return cases;
}

SP_TEST(kernel_add_tiers_equal) { sp_each_variant(SP_SLOT_ADD, compare_add); }
