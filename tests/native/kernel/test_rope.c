// SPDX-License-Identifier: Apache-2.0
// Rotary embedding: the table against double precision, and every tier of the
// rotation against the reference.
#include <math.h>
#include <string.h>

#include "kernel/rope/sincos.h"
#include "kernel/variants.h"
#include "test.h"

enum { MAX_HALF = 128, GUARD = 16 };

// Distance in units in the last place of the float that is nearest to `want`.
static double ulps(float got, double want) {
    const float nearest = (float)want;
    const double unit = fmax((double)nextafterf(fabsf(nearest), INFINITY) - fabs((double)nearest), 0x1p-149);
    return fabs((double)got - want) / unit;
}

SP_TEST(rope_table_is_within_one_ulp) {
    float inv_freq[MAX_HALF], c[MAX_HALF], s[MAX_HALF];
    for (int i = 0; i < MAX_HALF; i++) inv_freq[i] = powf(10000.0f, -(float)i / MAX_HALF);
    double worst = 0.0;
    for (int32_t position = 0; position <= 1 << 20; position = position < 4096 ? position + 1 : position + 4099) {
        sp_rope_table(c, s, inv_freq, MAX_HALF, position);
        for (int i = 0; i < MAX_HALF; i++) {
            const float angle = (float)position * inv_freq[i];
            worst = fmax(worst, fmax(ulps(c[i], cos((double)angle)), ulps(s[i], sin((double)angle))));
        }
    }
    sp_test_label("worst %.9f ulp", worst);
    SP_CHECK(worst <= 0.50001);
}

// Integers next to multiples of pi/2 (from its continued fraction), where the reduction cancels most; 30-digit values.
SP_TEST(rope_table_near_multiples_of_half_pi) {
    static const struct {
        int32_t position;
        float c, s;
    } known[] = {
        {0, 1.0f, 0.0f},
        {11, 0.00442569796f, -0.99999020655f},
        {355, -0.99999999954f, -0.0000301443534f},
        {51819, 0.0000246368446f, 1.0f},
        {573204, -2.93889986e-7f, 1.0f},
    };
    const float one = 1.0f;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        float c, s;
        sp_rope_table(&c, &s, &one, 1, known[i].position);
        sp_test_label("position=%d", (int)known[i].position);
        SP_CHECK_FLOATS(&c, &known[i].c, 1);
        SP_CHECK_FLOATS(&s, &known[i].s, 1);
    }
}

static size_t compare(void (*reference)(void), void (*variant)(void)) {
    static const size_t halves[] = {4, 8, 12, 16, 20, 28, 32, 40, 48, 64, 80, MAX_HALF};
    float x[2 * MAX_HALF], c[MAX_HALF], s[MAX_HALF], got[2 * MAX_HALF + GUARD], want[2 * MAX_HALF + GUARD];
    size_t cases = 0;
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
        for (int fill = 0; fill < SP_FILL_COUNT; fill++) {
            const size_t half = halves[i];
            sp_test_label("half=%zu fill=%d", half, fill);
            sp_fill_floats(x, 2 * half, (sp_fill)fill, i);
            // Few different values among themselves cancel exactly: the zero's sign is the definition's.
            const sp_fill turn = fill == SP_FILL_EQUAL ? SP_FILL_EQUAL : SP_FILL_NORMAL;
            sp_fill_floats(c, half, turn, i + 50);
            sp_fill_floats(s, half, turn, i + 100);
            memset(got, 0x55, sizeof got);
            memset(want, 0x55, sizeof want);
            ((sp_rope_fn)variant)(got, x, c, s, half, 0.125f);
            ((sp_rope_fn)reference)(want, x, c, s, half, 0.125f);
            SP_CHECK_FLOATS(got, want, 2 * half + GUARD);
            ((sp_rope_fn)variant)(x, x, c, s, half, 0.125f); // in place
            SP_CHECK_FLOATS(x, want, 2 * half);
            cases++;
        }
    }
    return cases;
}

SP_TEST(kernel_rope_tiers_equal) { sp_each_variant(SP_SLOT_ROPE, compare); }
