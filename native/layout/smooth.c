// SPDX-License-Identifier: Apache-2.0
#include "layout/smooth.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "base/dtype.h"

#define LEAST 0x1p-110f  // a row below this counts as zero: 127 / amax stays finite
// An affine element d * q + m may be much smaller than its terms, and these are rounded when they are multiplied by
// inv. Up to this ratio of terms to amax the error stays below a quarter of a step.
#define CANCELS 0x1p14f

enum { GROUP = 32 };

static uint32_t size_bits(float x) { return sp_f32_bits(x) & 0x7fffffffu; }

static float larger(float a, float b) {
    const uint32_t x = size_bits(a), y = size_bits(b);
    return sp_f32_from_bits(x > y ? x : y);
}

void sp_column_peaks(const sp_panel_layout *layout, const void *panels, size_t count, float *peaks, float *row) {
    const uint8_t *panel = panels;
    for (size_t p = 0; p < count; p++, panel += layout->bytes) {
        for (size_t r = 0; r < SP_PANEL_ROWS; r++) {
            sp_panel_row_f32(layout, row, panel, r);
            for (size_t j = 0; j < layout->k; j++) peaks[j] = larger(row[j], peaks[j]);
        }
    }
}

// |d| * the largest |q| + |m| of row r in group g.
static float terms(const sp_panel_layout *layout, const uint8_t *panel, size_t r, size_t g) {
    const bool affine = layout->format == SP_Q4_1;
    const size_t block = affine ? SP_BLOCK_Q4A : layout->format == SP_Q4_0 ? SP_BLOCK_Q4S : SP_BLOCK_Q8S;
    const uint16_t *scales = (const uint16_t *)(const void *)(panel + g / 2 * block) + g % 2 * SP_PANEL_ROWS;
    const float d = fabsf(sp_f16_to_f32(scales[r]));
    const float m = affine ? fabsf(sp_f16_to_f32(scales[SP_BLOCK_SCALES / sizeof *scales + r])) : 0.0f;
    return d * (affine ? 15.0f : layout->format == SP_Q4_0 ? 8.0f : 128.0f) + m;
}

static bool expandable(const sp_panel_layout *layout, const uint8_t *panel, size_t r, const float *s, float amax) {
    for (size_t g = 0; g < layout->k / GROUP; g++) {
        const float size = terms(layout, panel, r, g);
        float most = 0.0f;
        for (size_t j = 0; j < GROUP; j++) most = larger(most, s[g * GROUP + j]);
        if (!(size * (127.0f / amax) <= FLT_MAX)) return false;
        if (layout->format == SP_Q4_1 && !(size * most <= CANCELS * amax)) return false;
    }
    return true;
}

sp_status sp_row_scales(const sp_panel_layout *layout, const void *panels, size_t count, const float *s, float *inv,
                        float *scale, float *row) {
    const uint8_t *panel = panels;
    for (size_t p = 0; p < count; p++, panel += layout->bytes) {
        for (size_t r = 0; r < SP_PANEL_ROWS; r++, inv++, scale++) {
            sp_panel_row_f32(layout, row, panel, r);
            float amax = 0.0f;
            for (size_t j = 0; j < layout->k; j++) amax = larger(row[j] * s[j], amax);
            *inv = *scale = 0.0f;
            if (amax < LEAST) continue;
            if (!isfinite(amax) || !expandable(layout, panel, r, s, amax)) return SP_ERR_NUMERIC;
            *inv = 127.0f / amax;
            *scale = amax / 127.0f;
        }
    }
    return SP_OK;
}
