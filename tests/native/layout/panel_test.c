// SPDX-License-Identifier: Apache-2.0
// Packed panels hold the file's values: every format, ragged rows, odd numbers of groups.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "layout/panel.h"
#include "test.h"

static void fill(uint8_t *bytes, size_t size, sp_format format, uint64_t *random) {
    for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)sp_test_random(random);
    // Clear the top exponent bit of every 16-bit unit, so that scales and float values are finite.
    if (format == SP_F32)
        for (size_t i = 3; i < size; i += 4) bytes[i] &= 0xbf;
    else
        for (size_t i = 1; i < size; i += 2) bytes[i] &= 0xbf;
}

SP_TEST(panel_rows_equal_file_rows) {
    static const size_t sizes[] = {8, 24, 32, 96, 160, 576};
    uint64_t random = 1;
    for (int format = 0; format < SP_FORMAT_COUNT; format++) {
        const sp_format_info *info = sp_format_get(format);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            const size_t k = sizes[s], row_bytes = k / info->block * info->bytes;
            sp_panel_layout layout;
            if (k % info->block) {
                SP_CHECK_INT(sp_panel_layout_make(&layout, format, k), SP_ERR_ARGUMENT);
                continue;
            }
            sp_test_label("%s k=%zu", info->name, k);
            SP_REQUIRE(sp_panel_layout_make(&layout, format, k) == SP_OK);
            SP_CHECK_INT(layout.bytes % SP_ALIGN, 0);
            uint8_t *file = sp_alloc(16, row_bytes), *panel = sp_alloc(1, layout.bytes);
            float *want = sp_alloc(k, sizeof *want), *got = sp_alloc(k, sizeof *got);
            const void *rows[SP_PANEL_ROWS] = {0};
            fill(file, 16 * row_bytes, format, &random);
            for (size_t r = 0; r < 13; r++) rows[r] = file + r * row_bytes;
            memset(panel, 0xff, layout.bytes);  // packing overwrites what was there
            sp_panel_pack(&layout, panel, rows);
            for (size_t r = 0; r < SP_PANEL_ROWS; r++) {
                if (r < 13) sp_format_row_f32(format, want, rows[r], k);
                else memset(want, 0, k * sizeof *want);
                sp_panel_row_f32(&layout, got, panel, r);
                for (size_t i = 0; i < k; i++) got[i] += 0.0f, want[i] += 0.0f;  // a missing row's zeros have no sign
                SP_CHECK_FLOATS(got, want, k);
                for (size_t i = 0; info->block > 1 && i < k; i++) {
                    float column[SP_PANEL_ROWS];
                    sp_panel_column_f32(&layout, column, panel, i);
                    got[i] = column[r] + 0.0f;
                }
                SP_CHECK_FLOATS(got, want, k);
            }
            sp_free(file), sp_free(panel), sp_free(want), sp_free(got);
        }
    }
}

SP_TEST(panel_layout_refuses_what_it_cannot_hold) {
    sp_panel_layout layout;
    SP_CHECK_INT(sp_panel_layout_make(&layout, SP_Q4_0, 0), SP_ERR_ARGUMENT);
    SP_CHECK_INT(sp_panel_layout_make(&layout, SP_Q4_0, 40), SP_ERR_ARGUMENT);
    SP_CHECK_INT(sp_panel_layout_make(&layout, SP_F16, 12), SP_ERR_ARGUMENT);
    SP_CHECK_INT(sp_panel_layout_make(&layout, SP_F32, (1 << 24) + 8), SP_ERR_ARGUMENT);
    SP_CHECK_INT(sp_panel_layout_make(&layout, -1, 32), SP_ERR_ARGUMENT);
    SP_CHECK_INT(sp_panel_layout_make(&layout, SP_FORMAT_COUNT, 32), SP_ERR_ARGUMENT);
}
