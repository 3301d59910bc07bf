// SPDX-License-Identifier: Apache-2.0
// Sizes of columns and of smoothed rows; the expansion to int8 made with them fills -127..127 and never leaves it; and
// matrices that have no rowwise form are told.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/memory.h"
#include "kernel/kernel.h"
#include "layout/smooth.h"
#include "test.h"

enum { K = 96, PANELS = 3, GROUPS = K / 32 };

static const sp_format FORMATS[] = {SP_Q4_0, SP_Q4_1, SP_Q8_0};
static const sp_slot EXPAND[] = {SP_SLOT_EXPAND_Q4S, SP_SLOT_EXPAND_Q4A, SP_SLOT_EXPAND_Q8S};

typedef struct matrix {
    sp_panel_layout layout;
    uint8_t *panels;
    float s[K], row[K];
    float inv[PANELS * 16], scale[PANELS * 16];
} matrix;

static uint16_t *scale_of(matrix *m, size_t panel, size_t r, size_t g) {
    const size_t block = m->layout.bytes / ((GROUPS + 1) / 2);
    return (uint16_t *)(void *)(m->panels + panel * m->layout.bytes + g / 2 * block) + g % 2 * 16 + r;
}

static uint16_t *minimum_of(matrix *m, size_t panel, size_t r, size_t g) {
    return scale_of(m, panel, r, g) + SP_BLOCK_SCALES / sizeof(uint16_t);
}

// Random values; scales of 1/64 to 1/8, minima as large as the values; row 5 of panel 1 is all zeros.
static void make(matrix *m, sp_format format, uint64_t *random) {
    SP_REQUIRE(sp_panel_layout_make(&m->layout, format, K) == SP_OK);
    m->panels = sp_alloc(PANELS, m->layout.bytes);
    for (size_t i = 0; i < PANELS * m->layout.bytes; i++) m->panels[i] = (uint8_t)sp_test_random(random);
    for (size_t p = 0; p < PANELS; p++) {
        for (size_t r = 0; r < 16; r++) {
            for (size_t g = 0; g < GROUPS; g++) {
                const bool zero = p == 1 && r == 5;
                const float d = zero ? 0.0f : (float)(1 + sp_test_random(random) % 8) / 64.0f;
                *scale_of(m, p, r, g) = sp_f32_to_f16(d);
                if (format == SP_Q4_1) *minimum_of(m, p, r, g) = sp_f32_to_f16(-7.0f * d);
            }
        }
    }
    for (size_t j = 0; j < K; j++) m->s[j] = j == 40 ? 0.0f : (float)(1 + sp_test_random(random) % 512) / 64.0f;
}

static sp_status measure(matrix *m) {
    return sp_row_scales(&m->layout, m->panels, PANELS, m->s, m->inv, m->scale, m->row);
}

SP_TEST(smooth_sizes_are_the_largest_values) {
    uint64_t random = 7;
    for (size_t f = 0; f < 3; f++) {
        matrix m;
        make(&m, FORMATS[f], &random);
        SP_CHECK_INT(measure(&m), SP_OK);
        float peaks[K] = {[3] = 1e6f}, want[K] = {[3] = 1e6f};
        sp_column_peaks(&m.layout, m.panels, PANELS, peaks, m.row);
        for (size_t i = 0; i < PANELS * 16; i++) {
            sp_panel_row_f32(&m.layout, m.row, m.panels + i / 16 * m.layout.bytes, i % 16);
            float amax = 0.0f;
            for (size_t j = 0; j < K; j++) {
                amax = fmaxf(amax, fabsf(m.row[j] * m.s[j]));
                want[j] = fmaxf(want[j], fabsf(m.row[j]));
            }
            SP_CHECK(m.scale[i] == amax / 127.0f && m.inv[i] == (amax == 0.0f ? 0.0f : 127.0f / amax));
        }
        SP_CHECK(m.inv[16 + 5] == 0.0f);
        SP_CHECK_FLOATS(peaks, want, K);
        sp_free(m.panels);
    }
}

SP_TEST(smooth_rows_fill_int8) {
    uint64_t random = 11;
    sp_kernel_set kernels;
    sp_kernel_select(&kernels, 0);
    for (size_t f = 0; f < 3; f++) {
        matrix m;
        make(&m, FORMATS[f], &random);
        SP_CHECK_INT(measure(&m), SP_OK);
        int8_t out[K * 16];
        for (size_t p = 0; p < PANELS; p++) {
            const sp_expand_r_args args = {out, m.panels + p * m.layout.bytes, m.inv + p * 16, m.s, K};
            ((sp_expand_r_fn)kernels.k[EXPAND[f]]->fn)(&args);
            for (size_t r = 0; r < 16; r++) {
                int most = 0;
                for (size_t j = 0; j < K; j++) {
                    const int size = abs(out[j / 4 * 64 + r * 4 + j % 4]);
                    most = size > most ? size : most;
                }
                SP_CHECK_INT(most, p == 1 && r == 5 ? 0 : 127);
            }
        }
        sp_free(m.panels);
    }
}

SP_TEST(smooth_refuses_what_cannot_be_expanded) {
    uint64_t random = 13;
    for (size_t f = 0; f < 3; f++) {
        matrix m;
        make(&m, FORMATS[f], &random);
        const uint16_t kept = *scale_of(&m, 2, 9, 1);
        *scale_of(&m, 2, 9, 1) = 0x7c00;  // infinite
        SP_CHECK_INT(measure(&m), SP_ERR_NUMERIC);
        *scale_of(&m, 2, 9, 1) = 0x7e00;  // NaN
        SP_CHECK_INT(measure(&m), SP_ERR_NUMERIC);
        *scale_of(&m, 2, 9, 1) = kept;
        m.s[17] = INFINITY;
        SP_CHECK_INT(measure(&m), SP_ERR_NUMERIC);
        m.s[17] = 1.0f;
        SP_CHECK_INT(measure(&m), SP_OK);
        sp_free(m.panels);
    }
    // An affine group whose elements all cancel to zero, huge beside the rest of its row.
    matrix m;
    make(&m, SP_Q4_1, &random);
    uint8_t *data = m.panels + 2 * SP_BLOCK_SCALES;  // panel 0, group 0
    for (size_t line = 0; line < 4; line++) memset(data + line * 64, 0xff, 4);
    *scale_of(&m, 0, 0, 0) = sp_f32_to_f16(4096.0f);
    *minimum_of(&m, 0, 0, 0) = sp_f32_to_f16(-61440.0f);
    for (size_t g = 1; g < GROUPS; g++) {
        *scale_of(&m, 0, 0, g) = sp_f32_to_f16(0.0f);
        *minimum_of(&m, 0, 0, g) = sp_f32_to_f16(0.001f);
    }
    SP_CHECK_INT(measure(&m), SP_ERR_NUMERIC);
    *minimum_of(&m, 0, 0, 0) = sp_f32_to_f16(0.0f);
    *scale_of(&m, 0, 0, 0) = sp_f32_to_f16(0.0f);
    SP_CHECK_INT(measure(&m), SP_OK);
    sp_free(m.panels);
}
