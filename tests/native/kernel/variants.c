// SPDX-License-Identifier: Apache-2.0
#include "kernel/variants.h"

#include <math.h>

#include "base/dtype.h"
#include "test.h"

// Tiers that have a kernel in every slot; the others have some.
enum { WHOLE_TIERS = 1 << SP_TIER_REF | 1 << SP_TIER_AVX2 | 1 << SP_TIER_AVX512 | 1 << SP_TIER_NEON };

static uint32_t supported(void) {
    sp_cpu cpu;
    sp_cpu_detect(&cpu);
    return sp_kernel_tiers_supported(&cpu) & sp_kernel_tiers_built();
}

void sp_each_variant(sp_slot slot, sp_compare compare) {
    size_t count;
    const sp_kernel *table = sp_kernel_table(&count);
    const sp_kernel *reference = NULL;
    for (size_t i = 0; i < count; i++)
        if (table[i].slot == slot && table[i].tier == SP_TIER_REF) reference = &table[i];
    SP_REQUIRE(reference != NULL);
    const uint32_t runnable = supported();
    uint32_t want = runnable & WHOLE_TIERS, ran = 0;
    for (size_t i = 0; i < count; i++) {
        if (table[i].slot != slot || !(runnable >> table[i].tier & 1)) continue;
        want |= 1u << table[i].tier;
        sp_test_label("%s", table[i].name);
        if (compare(reference->fn, table[i].fn) == 0) sp_test_fail(__FILE__, __LINE__, "%s never ran", table[i].name);
        ran |= 1u << table[i].tier;
    }
    sp_test_label("slot %d", (int)slot);
    SP_CHECK_INT(ran, want);
}

float sp_random_float(uint64_t *state, float low, float high) {
    const float unit = (float)(sp_test_random(state) >> 40) * 0x1p-24f;
    return low + (high - low) * unit;
}

static float finite_bits(uint64_t *state) {
    float x;
    do {
        x = sp_f32_from_bits((uint32_t)sp_test_random(state));
    } while (!isfinite(x));
    return x;
}

// NaN in all its forms: either sign, with a payload, signalling.
static float special(uint64_t *state) {
    static const uint32_t values[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7fffffff, 0xffa00001};
    const uint64_t pick = sp_test_random(state) % 96;
    return pick < 6 ? sp_f32_from_bits(values[pick]) : sp_random_float(state, -4.0f, 4.0f);
}

static float one(sp_fill fill, uint64_t *state) {
    static const float few[] = {0.0f, -0.0f, 1.0f, 1.0f, -1.0f, 2.5f};
    const float sign = sp_test_random(state) & 1 ? -1.0f : 1.0f;
    switch (fill) {
        case SP_FILL_WIDE:
            return sign * ldexpf(sp_random_float(state, 1.0f, 2.0f), (int)(sp_test_random(state) % 61) - 30);
        case SP_FILL_ZEROS: return sign * 0.0f;
        case SP_FILL_EQUAL: return few[sp_test_random(state) % 6];
        case SP_FILL_DENORMAL: return sign * sp_f32_from_bits((uint32_t)sp_test_random(state) & 0x7fffffu);
        case SP_FILL_HUGE: return sign * sp_random_float(state, 1e38f, 3.4e38f);
        case SP_FILL_BITS: return finite_bits(state);
        case SP_FILL_SPECIAL: return special(state);
        default: return sp_random_float(state, -4.0f, 4.0f);
    }
}

void sp_fill_floats(float *x, size_t n, sp_fill fill, uint64_t seed) {
    uint64_t state = seed * SP_FILL_COUNT + fill;
    for (size_t i = 0; i < n; i++) x[i] = one(fill, &state);
}
