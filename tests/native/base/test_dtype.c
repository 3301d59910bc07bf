// SPDX-License-Identifier: Apache-2.0
// Every float16 there is, every boundary between two of them, and the same for bfloat16.
#include <math.h>

#include "base/dtype.h"
#include "test.h"

SP_TEST(dtype_f16_round_trip_is_exact) {
    for (uint32_t h = 0; h <= 0xffff; h++) {
        float x = sp_f16_to_f32((uint16_t)h);
        uint32_t quiet = (h & 0x7fff) > 0x7c00 ? h | 0x200 : h;
        sp_test_label("half=0x%04x", h);
        SP_CHECK_INT(sp_f32_to_f16(x), quiet);
        SP_CHECK_INT(isnan(x) != 0, (h & 0x7fff) > 0x7c00);
    }
}

SP_TEST(dtype_f16_known_values) {
    SP_CHECK(sp_f16_to_f32(0x3c00) == 1.0f);
    SP_CHECK(sp_f16_to_f32(0x7bff) == 65504.0f);
    SP_CHECK(sp_f16_to_f32(0x0001) == 0x1p-24f);
    SP_CHECK(sp_f16_to_f32(0xfc00) == -INFINITY);
    SP_CHECK_INT(sp_f32_to_f16(-0.0f), 0x8000);
    SP_CHECK_INT(sp_f32_to_f16(65519.996f), 0x7bff);
    SP_CHECK_INT(sp_f32_to_f16(65520.0f), 0x7c00);
    SP_CHECK_INT(sp_f32_to_f16(1e38f), 0x7c00);
    SP_CHECK_INT(sp_f32_to_f16(0x1p-25f), 0);  // tie between 0 and 2^-24
    SP_CHECK_INT(sp_f32_to_f16(nextafterf(0x1p-25f, 1.0f)), 1);
    SP_CHECK_INT(sp_f32_to_f16(1e-45f), 0);
    SP_CHECK_INT(sp_f32_to_f16(sp_f32_from_bits(0x7f800001)), 0x7e00);  // signalling NaN whose payload is cut off
}

// Between neighbours h and h + 1 the midpoint goes to the even one, and what lies beside it to the nearer.
SP_TEST(dtype_f16_rounds_to_nearest_even) {
    for (uint32_t h = 0; h < 0x7bff; h++) {
        float middle = 0.5f * (sp_f16_to_f32((uint16_t)h) + sp_f16_to_f32((uint16_t)(h + 1)));  // exact
        uint32_t even = h % 2 == 0 ? h : h + 1;
        sp_test_label("half=0x%04x", h);
        SP_CHECK_INT(sp_f32_to_f16(middle), even);
        SP_CHECK_INT(sp_f32_to_f16(-middle), even | 0x8000);
        SP_CHECK_INT(sp_f32_to_f16(nextafterf(middle, 0.0f)), h);
        SP_CHECK_INT(sp_f32_to_f16(nextafterf(middle, INFINITY)), h + 1);
    }
}

SP_TEST(dtype_bf16_round_trip_and_rounding) {
    for (uint32_t b = 0; b <= 0xffff; b++) {
        uint32_t size = b & 0x7fff;
        sp_test_label("brain=0x%04x", b);
        SP_CHECK_INT(sp_f32_to_bf16(sp_bf16_to_f32((uint16_t)b)), size > 0x7f80 ? b | 0x40 : b);
        if (size >= 0x7f80) continue;
        uint32_t middle = b << 16 | 0x8000;
        SP_CHECK_INT(sp_f32_to_bf16(sp_f32_from_bits(middle)), b % 2 == 0 ? b : b + 1);
        SP_CHECK_INT(sp_f32_to_bf16(sp_f32_from_bits(middle - 1)), b);
        SP_CHECK_INT(sp_f32_to_bf16(sp_f32_from_bits(middle + 1)), b + 1);
    }
}
