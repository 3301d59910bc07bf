// SPDX-License-Identifier: Apache-2.0
// Argmax and top-k against a full sort: ties, zeros of two signs, infinities,
// rows in every order, every tail.
#include <math.h>
#include <stdlib.h>

#include "kernel/variants.h"
#include "test.h"

enum { LONGEST = 49152 };

static float x[LONGEST + 1];

static size_t compare_argmax(void (*reference)(void), void (*variant)(void)) {
    size_t cases = 0;
    for (int fill = 0; fill < SP_FILL_SPECIAL; fill++) {
        for (size_t n = 1; n <= LONGEST; n = n < 70 ? n + 1 : n * 3 / 2) {
            sp_test_label("fill=%d n=%zu", fill, n);
            sp_fill_floats(x, n, (sp_fill)fill, n);
            SP_CHECK_INT(((sp_argmax_fn)variant)(x, n), ((sp_argmax_fn)reference)(x, n));
            cases++;
        }
    }
    return cases;
}

SP_TEST(kernel_argmax_tiers_equal) { sp_each_variant(SP_SLOT_ARGMAX, compare_argmax); }

static size_t argmax_edges(void (*reference)(void), void (*variant)(void)) {
    (void)reference;
    const sp_argmax_fn argmax = (sp_argmax_fn)variant;
    static const size_t lengths[] = {1, 7, 16, 17, 33, 500, 512, 513, 1000, 1024, 5000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const size_t n = lengths[i];
        sp_test_label("n=%zu", n);
        for (size_t j = 0; j < n; j++) x[j] = -INFINITY;
        SP_CHECK_INT(argmax(x, n), 0);
        for (size_t j = 0; j < n; j++) {
            x[j] = NAN;
            SP_CHECK_INT(argmax(x, n), -1);
            x[j] = INFINITY;
            SP_CHECK_INT(argmax(x, n), j);
            x[j] = -INFINITY;
        }
        for (size_t j = 0; j < n; j++) x[j] = j % 2 ? 0.0f : -0.0f;
        SP_CHECK_INT(argmax(x, n), 0);
        x[n / 2] = x[n - 1] = 1.0f;
        SP_CHECK_INT(argmax(x, n), n / 2);
    }
    return 1;
}

SP_TEST(kernel_argmax_edges) { sp_each_variant(SP_SLOT_ARGMAX, argmax_edges); }

static int order(const void *a, const void *b) {
    const int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    if (x[i] != x[j]) return x[i] > x[j] ? -1 : 1;
    return i - j;
}

static size_t check_topk(sp_topk_fn topk, size_t n, size_t k) {
    static int32_t sorted[LONGEST], index[LONGEST];
    static float value[LONGEST];
    for (size_t i = 0; i < n; i++) sorted[i] = (int32_t)i;
    qsort(sorted, n, sizeof *sorted, order);
    topk(index, value, x, n, k);
    SP_CHECK_BYTES(index, sorted, k * sizeof *index);
    for (size_t i = 0; i < k; i++) SP_CHECK_BYTES(&value[i], &x[sorted[i]], sizeof *value);
    return 1;
}

static size_t topk_random(void (*reference)(void), void (*variant)(void)) {
    (void)reference;
    static const size_t lengths[] = {1, 5, 40, 279, 1023, 1024, 4099, LONGEST};
    static const size_t ks[] = {1, 2, 7, 40, 100, 256, 1024, 1500};
    size_t cases = 0;
    for (int fill = 0; fill < SP_FILL_SPECIAL; fill++) {
        for (size_t i = 0; i < 64; i++) {
            const size_t n = lengths[i / 8], k = ks[i % 8];
            if (k > n || (n == LONGEST && k > 300 && fill > 0)) continue;
            sp_test_label("fill=%d n=%zu k=%zu", fill, n, k);
            sp_fill_floats(x, n, (sp_fill)fill, i);
            cases += check_topk((sp_topk_fn)variant, n, k);
        }
    }
    return cases;
}

SP_TEST(kernel_topk_is_a_sort) { sp_each_variant(SP_SLOT_TOPK, topk_random); }

static size_t topk_shapes(void (*reference)(void), void (*variant)(void)) {
    (void)reference;
    enum { N = 5000 };
    for (int shape = 0; shape < 5; shape++) {
        for (int i = 0; i < N; i++) {
            const float ascending = (float)i;
            const float shapes[] = {ascending, -ascending, 1.0f, i < N / 2 ? -INFINITY : ascending, (float)(i % 64)};
            x[i] = shapes[shape];
        }
        sp_test_label("shape=%d", shape);
        check_topk((sp_topk_fn)variant, N, 50);
        check_topk((sp_topk_fn)variant, N, 900);
        check_topk((sp_topk_fn)variant, 1500, 1500);
    }
    return 1;
}

SP_TEST(kernel_topk_ordered_and_equal_rows) { sp_each_variant(SP_SLOT_TOPK, topk_shapes); }
