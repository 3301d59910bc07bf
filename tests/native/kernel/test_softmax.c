// SPDX-License-Identifier: Apache-2.0
// Block softmax, merge and finish: every tier equals the reference on every
// count of visible keys and every tail.
#include <math.h>
#include <string.h>

#include "kernel/softmax/exp2.h"
#include "kernel/variants.h"
#include "test.h"

SP_TEST(exp2_is_close_and_exact_at_integers) {
    for (int n = -126; n <= 127; n++) SP_CHECK(sp_exp2((float)n) == ldexpf(1.0f, n));
    double worst = 0.0;
    for (float x = -126.0f; x <= 127.0f; x += 0x1.1p-9f) {
        const double want = exp2((double)x);
        worst = fmax(worst, fabs((double)sp_exp2(x) - want) / want);
    }
    SP_CHECK(worst < 6.8e-8);
}

SP_TEST(exp2_edges) {
    SP_CHECK(sp_exp2(nextafterf(-126.0f, -127.0f)) == 0.0f);
    SP_CHECK(sp_exp2(-INFINITY) == 0.0f && !signbit(sp_exp2(-INFINITY)));
    SP_CHECK(sp_exp2(nextafterf(-126.0f, 0.0f)) >= 0x1p-126f);
    SP_CHECK(sp_exp2(1000.0f) == 0x1p127f);
    SP_CHECK(sp_exp2(INFINITY) == 0x1p127f);
    SP_CHECK(isnan(sp_exp2(NAN)));
    SP_CHECK(sp_exp2(-0.0f) == 1.0f);
}

enum { ROWS = 70, LD = SP_KEYS + 8 };

typedef struct block {
    float s[ROWS * LD], max[ROWS], sum[ROWS];
} block;

static void run_softmax(void (*fn)(void), block *b, const uint8_t *visible, size_t rows) {
    ((sp_softmax_fn)fn)(&(sp_softmax_args){b->s, LD, rows, visible, b->max, b->sum});
}

static size_t compare_softmax(void (*reference)(void), void (*variant)(void)) {
    static block got, want;
    static const float scales[] = {0.5f, 40.0f}; // a product, so that no NaN is signalling
    uint8_t visible[ROWS];
    size_t cases = 0;
    for (int fill = 0; fill < SP_FILL_COUNT; fill++) {
        for (int round = 0; round < 4; round++) {
            sp_test_label("fill=%d round=%d", fill, round);
            sp_fill_floats(want.s, ROWS * LD, (sp_fill)fill, (uint64_t)round);
            for (size_t i = 0; i < ROWS * LD; i++) want.s[i] *= scales[round % 2];
            for (size_t r = 0; r < ROWS; r++) visible[r] = round < 2 ? SP_KEYS : (uint8_t)(r % SP_KEYS + 1);
            got = want;
            run_softmax(variant, &got, visible, ROWS);
            run_softmax(reference, &want, visible, ROWS);
            SP_CHECK_FLOATS(got.s, want.s, ROWS * LD);
            SP_CHECK_FLOATS(got.max, want.max, ROWS);
            SP_CHECK_FLOATS(got.sum, want.sum, ROWS);
            cases++;
        }
    }
    return cases;
}

SP_TEST(kernel_softmax_tiers_equal) { sp_each_variant(SP_SLOT_SOFTMAX, compare_softmax); }

// Rows 0..5: NaN, +infinity, only -infinity, NaN out of sight, -0 as the
// maximum, one visible key.
static size_t softmax_edges(void (*reference)(void), void (*variant)(void)) {
    (void)reference;
    static block b;
    uint8_t visible[6] = {64, 64, 64, 10, 64, 1};
    for (size_t i = 0; i < 6 * LD; i++) b.s[i] = -1.0f;
    b.s[40] = NAN;
    b.s[LD + 63] = INFINITY;
    for (int i = 0; i < 64; i++) b.s[2 * LD + i] = -INFINITY;
    b.s[3 * LD + 10] = NAN;
    b.s[4 * LD + 17] = -0.0f;
    run_softmax(variant, &b, visible, 6);
    for (int r = 0; r < 3; r++) SP_CHECK(isnan(b.sum[r]));
    SP_CHECK(b.sum[3] == 10.0f && b.s[3 * LD + 10] == 0.0f && b.max[3] == -1.0f);
    SP_CHECK(b.max[4] == 0.0f && !signbit(b.max[4]) && b.s[4 * LD + 17] == 1.0f && b.sum[4] == 32.5f);
    SP_CHECK(b.max[5] == -1.0f && b.sum[5] == 1.0f && b.s[5 * LD + 63] == 0.0f);
    return 1;
}

SP_TEST(kernel_softmax_edges) { sp_each_variant(SP_SLOT_SOFTMAX, softmax_edges); }

enum { MAX_D = 136, LDO = MAX_D + 3, LDB = MAX_D + 5 };

typedef struct state {
    float o[ROWS * LDO], m[ROWS], l[ROWS];
} state;

static size_t compare_merge(void (*reference)(void), void (*variant)(void)) {
    static const size_t widths[] = {8, 16, 24, 64, 96, 128, MAX_D};
    static const size_t counts[] = {1, 3, 8, 9, 16, 17, ROWS};
    static state got, want;
    static float ob[ROWS * LDB], mb[ROWS], lb[ROWS];
    size_t cases = 0;
    for (int fill = 0; fill < SP_FILL_COUNT; fill++) {
        for (size_t i = 0; i < 49; i++) {
            const size_t d = widths[i / 7], rows = counts[i % 7];
            sp_test_label("fill=%d d=%zu rows=%zu", fill, d, rows);
            sp_fill_floats(want.o, ROWS * LDO, SP_FILL_WIDE, i);
            sp_fill_floats(want.m, ROWS, (sp_fill)fill, i + 1);
            sp_fill_floats(want.l, ROWS, SP_FILL_NORMAL, i + 2);
            sp_fill_floats(ob, ROWS * LDB, (sp_fill)fill, i + 3);
            sp_fill_floats(mb, ROWS, (sp_fill)fill, i + 4);
            sp_fill_floats(lb, ROWS, SP_FILL_NORMAL, i + 5);
            got = want;
            ((sp_merge_fn)variant)(&(sp_merge_args){got.o, got.m, got.l, ob, mb, lb, LDO, LDB, rows, d});
            ((sp_merge_fn)reference)(&(sp_merge_args){want.o, want.m, want.l, ob, mb, lb, LDO, LDB, rows, d});
            SP_CHECK_FLOATS(got.o, want.o, ROWS * LDO);
            SP_CHECK_FLOATS(got.m, want.m, ROWS);
            SP_CHECK_FLOATS(got.l, want.l, ROWS);
            cases++;
        }
    }
    return cases;
}

SP_TEST(kernel_merge_tiers_equal) { sp_each_variant(SP_SLOT_MERGE, compare_merge); }

static size_t compare_finish(void (*reference)(void), void (*variant)(void)) {
    static const size_t widths[] = {8, 16, 24, 64, 96, 128};
    float o[128], got[144], want[144];
    size_t cases = 0;
    for (int fill = 0; fill < SP_FILL_COUNT; fill++) {
        for (size_t i = 0; i < 6; i++) {
            sp_test_label("fill=%d d=%zu", fill, widths[i]);
            sp_fill_floats(o, 128, (sp_fill)fill, i);
            memset(got, 0x55, sizeof got);
            memset(want, 0x55, sizeof want);
            ((sp_finish_fn)variant)(got, o, 3.7f, widths[i]);
            ((sp_finish_fn)reference)(want, o, 3.7f, widths[i]);
            SP_CHECK_FLOATS(got, want, 144);
            for (size_t j = 0; j < widths[i]; j++) SP_CHECK(got[j] != 0.0f || !signbit(got[j]));
            cases++;
        }
    }
    return cases;
}

SP_TEST(kernel_finish_tiers_equal) { sp_each_variant(SP_SLOT_FINISH, compare_finish); }
