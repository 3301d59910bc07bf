// SPDX-License-Identifier: Apache-2.0
// Conversions: every float16 and bfloat16 there is, float32 at and beside every
// rounding boundary, all strides and tails.
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "kernel/variants.h"
#include "test.h"

enum { ALL = 65536 };

static uint16_t halves[ALL + 8];
static float got[ALL * 2], want[ALL * 2];

static size_t compare_widen(void (*reference)(void), void (*variant)(void)) {
    for (size_t i = 0; i < ALL; i++) halves[i] = (uint16_t)i;
    ((sp_widen_fn)variant)(got, halves, ALL);
    ((sp_widen_fn)reference)(want, halves, ALL);
    SP_CHECK_BYTES(got, want, ALL * sizeof *got);
    for (size_t n = 8; n <= 64; n += 8) {
        sp_test_label("n=%zu", n);
        memset(got, 0x55, sizeof got);
        ((sp_widen_fn)variant)(got + 1, halves + 15001, n);
        SP_CHECK_FLOATS(got + 1, want + 15001, n);
        SP_CHECK_INT(sp_f32_bits(got[n + 1]), 0x55555555);
    }
    return ALL;
}

SP_TEST(kernel_widen_f16_tiers_equal) { sp_each_variant(SP_SLOT_WIDEN_F16, compare_widen); }

// Halves, midpoints and the floats beside them: the rounding boundaries of
// float16.
static void fill_boundaries(float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const float low = sp_f16_to_f32((uint16_t)(i / 3));
        const float high = sp_f16_to_f32((uint16_t)(i / 3 + 1));
        const float middle = 0.5f * (low + high);
        x[i] = i % 3 == 0 ? middle : nextafterf(middle, i % 3 == 1 ? low : high);
    }
}

// Every NaN that differs in the bits that float16 keeps or in the lowest one, which alone makes it a NaN.
static void fill_nan(float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const uint32_t kept = (uint32_t)(i >> 1 & 0x3ff) << 13;
        x[i] = sp_f32_from_bits((uint32_t)(i >> 11 & 1) << 31 | 0x7f800000u | kept | (kept == 0 || (i & 1)));
    }
}

static size_t compare_narrow(void (*reference)(void), void (*variant)(void)) {
    static float x[ALL];
    static uint16_t a[ALL], b[ALL];
    static const size_t strides[] = {1, 2, 16, 48};
    size_t cases = 0;
    for (int fill = 0; fill < SP_FILL_COUNT + 2; fill++) {
        if (fill < SP_FILL_COUNT) sp_fill_floats(x, ALL, (sp_fill)fill, 9);
        else if (fill == SP_FILL_COUNT) fill_boundaries(x, ALL);
        else fill_nan(x, ALL);
        for (size_t i = 0; i < 4; i++) {
            for (size_t n = 8; n <= ALL / strides[i]; n = n < 64 ? n + 8 : n * 2 + 8) {
                sp_test_label("fill=%d stride=%zu n=%zu", fill, strides[i], n);
                memset(a, 0x55, sizeof a);
                memset(b, 0x55, sizeof b);
                ((sp_narrow_fn)variant)(a, strides[i], x, n);
                ((sp_narrow_fn)reference)(b, strides[i], x, n);
                SP_CHECK_BYTES(a, b, sizeof a);
                cases++;
            }
        }
    }
    return cases;
}

SP_TEST(kernel_narrow_f16_tiers_equal) { sp_each_variant(SP_SLOT_NARROW_F16, compare_narrow); }

// The panel holds all 65,536 patterns; element (k, r) has to land at [k][r].
static size_t expand(void (*reference)(void), void (*variant)(void), float (*convert)(uint16_t)) {
    uint64_t state = 3;
    const uint16_t mix = (uint16_t)(sp_test_random(&state) | 1);
    for (size_t i = 0; i < ALL; i++) halves[i] = (uint16_t)(i * mix);
    for (size_t k = 2; k <= ALL / 16; k *= 2) {
        sp_test_label("k=%zu", k);
        memset(got, 0x55, sizeof got);
        memset(want, 0x55, sizeof want);
        ((sp_expand_fn)variant)(got, halves, k);
        ((sp_expand_fn)reference)(want, halves, k);
        SP_CHECK_FLOATS(got, want, k * 16 + 16);
    }
    for (size_t k = 0; k < ALL / 16; k++) {
        for (size_t r = 0; r < 16; r++) {
            const float value = convert(halves[k / 2 * 32 + r * 2 + k % 2]);
            SP_CHECK_FLOATS(&got[k * 16 + r], &value, 1);
        }
    }
    return ALL;
}

static size_t expand_f16(void (*reference)(void), void (*variant)(void)) {
    return expand(reference, variant, sp_f16_to_f32);
}

static size_t expand_bf16(void (*reference)(void), void (*variant)(void)) {
    return expand(reference, variant, sp_bf16_to_f32);
}

SP_TEST(kernel_expand_f16_tiers_equal) { sp_each_variant(SP_SLOT_EXPAND_F16, expand_f16); }
SP_TEST(kernel_expand_bf16_tiers_equal) { sp_each_variant(SP_SLOT_EXPAND_BF16, expand_bf16); }
