// SPDX-License-Identifier: Apache-2.0
// Activation quantisation: every tier equals the reference in every slot of
// every panel width, and touches nothing else.
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "kernel/variants.h"
#include "test.h"

enum { MAX_GROUPS = 50, MAX_WIDTH = 16 };

typedef struct panel {
    int8_t q[MAX_GROUPS * SP_GROUP * MAX_WIDTH];
    float d[MAX_GROUPS * MAX_WIDTH], sum[MAX_GROUPS * MAX_WIDTH];
    int32_t neg[MAX_GROUPS * MAX_WIDTH];
} panel;

static void run(void (*fn)(void), panel *p, const float *x, size_t groups, size_t width, size_t slot) {
    memset(p, 0x55, sizeof *p);
    const sp_quant_args args = {x,           groups * SP_GROUP, width,        p->q + 4 * slot,
                                p->d + slot, p->neg + slot,     p->sum + slot};
    ((sp_quant_fn)fn)(&args);
}

static void same(const panel *got, const panel *want) {
    SP_CHECK_BYTES(got->q, want->q, sizeof got->q);
    SP_CHECK_FLOATS(got->d, want->d, MAX_GROUPS * MAX_WIDTH);
    SP_CHECK_BYTES(got->neg, want->neg, sizeof got->neg);
    SP_CHECK_FLOATS(got->sum, want->sum, MAX_GROUPS * MAX_WIDTH);
}

static size_t compare(void (*reference)(void), void (*variant)(void)) {
    static const size_t counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 18, 48, MAX_GROUPS};
    static const size_t widths[] = {1, 4, 12, 16};
    static panel got, want;
    static float x[MAX_GROUPS * SP_GROUP];
    size_t cases = 0;
    for (int fill = 0; fill < SP_FILL_COUNT; fill++) {
        for (size_t i = 0; i < 11 * 4; i++) {
            const size_t groups = counts[i / 4], width = widths[i % 4], slot = i % width;
            sp_test_label("fill=%d groups=%zu width=%zu slot=%zu", fill, groups, width, slot);
            sp_fill_floats(x, groups * SP_GROUP, (sp_fill)fill, i);
            run(variant, &got, x, groups, width, slot);
            run(reference, &want, x, groups, width, slot);
            same(&got, &want);
            cases++;
        }
    }
    return cases;
}

SP_TEST(kernel_quant_tiers_equal) { sp_each_variant(SP_SLOT_QUANT, compare); }

// Five groups of one row: ordinary, below the limit, at the limit, infinite,
// NaN.
static size_t edges(void (*reference)(void), void (*variant)(void)) {
    (void)reference;
    static panel p;
    float x[5 * SP_GROUP] = {0};
    for (int i = 0; i < SP_GROUP; i++) x[i] = (float)(i - 16) * 0.5f;
    x[SP_GROUP + 3] = nextafterf(0x1p-110f, 0.0f);
    x[2 * SP_GROUP + 3] = -0x1p-110f;
    x[3 * SP_GROUP + 31] = -INFINITY;
    x[4 * SP_GROUP] = sp_f32_from_bits(0xffc12345u);
    run(variant, &p, x, 5, 1, 0);
    SP_CHECK(p.d[0] == 8.0f / 127.0f);
    SP_CHECK_INT(p.q[0], -127);
    SP_CHECK_INT(p.q[31], 119); // 7.5 * 127 / 8 = 119.06
    int sum = 0;
    for (int i = 0; i < SP_GROUP; i++) sum += p.q[i];
    SP_CHECK_INT(p.neg[0], -sum);
    SP_CHECK(p.sum[0] == p.d[0] * (float)sum);
    SP_CHECK(p.d[1] == 0.0f && p.sum[1] == 0.0f && p.neg[1] == 0 && p.q[SP_GROUP + 3] == 0);
    SP_CHECK(p.d[2] == 0x1p-110f / 127.0f && p.neg[2] == 127 && p.q[2 * SP_GROUP + 3] == -127);
    for (int g = 3; g < 5; g++) {
        SP_CHECK(isnan(p.d[g]) && isnan(p.sum[g]) && p.neg[g] == 0);
        for (int i = 0; i < SP_GROUP; i++) SP_CHECK_INT(p.q[g * SP_GROUP + i], 0);
    }
    return 1;
}

SP_TEST(kernel_quant_edges) { sp_each_variant(SP_SLOT_QUANT, edges); }

// 127 / amax is one here, so that halves are ties: to even, for either sign.
static size_t ties(void (*reference)(void), void (*variant)(void)) {
    (void)reference;
    static panel p;
    float x[4 * SP_GROUP];
    for (int i = 0; i < 4 * SP_GROUP; i++) x[i] = i % SP_GROUP == 0 ? 127.0f : (float)(i - 64) + 0.5f;
    run(variant, &p, x, 4, 1, 0);
    for (int i = 0; i < 4 * SP_GROUP; i++) SP_CHECK_INT(p.q[i], (int)rintf(x[i]));
    SP_CHECK_INT(p.q[63], 0); // -0.5
    SP_CHECK_INT(p.q[65], 2); // 1.5
    SP_CHECK_INT(p.q[66], 2); // 2.5
    return 1;
}

SP_TEST(kernel_quant_ties_to_even) { sp_each_variant(SP_SLOT_QUANT, ties); }

// No scale rounds a value past 127: amax sweeps over all mantissas' upper bits.
static size_t stays_in_range(void (*reference)(void), void (*variant)(void)) {
    (void)reference;
    static panel p;
    float x[4 * SP_GROUP] = {0};
    size_t cases = 0;
    for (uint32_t bits = 0x3f800000u; bits < 0x40000000u; bits += 4 * 251) {
        for (uint32_t g = 0; g < 4; g++) x[g * SP_GROUP] = sp_f32_from_bits(bits + 251 * g);
        run(variant, &p, x, 4, 1, 0);
        for (int g = 0; g < 4; g++) SP_CHECK_INT(p.q[g * SP_GROUP], 127);
        cases++;
    }
    return cases;
}

SP_TEST(kernel_quant_maximum_is_127) { sp_each_variant(SP_SLOT_QUANT, stays_in_range); }
