// SPDX-License-Identifier: Apache-2.0
#include "layout/panel.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"

enum { GROUP = 32, MAX_K = 1 << 24 };

static size_t padded(size_t bytes) { return (bytes + SP_ALIGN - 1) / SP_ALIGN * SP_ALIGN; }

sp_status sp_panel_layout_make(sp_panel_layout *out, int format, size_t k) {
    const sp_format_info *info = sp_format_get(format);
    if (!info || k == 0 || k > MAX_K || k % (info->block == 1 ? 8 : info->block)) return SP_ERR_ARGUMENT;
    const size_t scales = padded(k / GROUP * SP_PANEL_ROWS * sizeof(uint16_t));
    *out = (sp_panel_layout){.format = (sp_format)format, .k = k};
    switch (out->format) {
        case SP_F32: out->bytes = k * SP_PANEL_ROWS * sizeof(float); break;
        case SP_F16:
        case SP_BF16: out->bytes = padded((k + 1) / 2 * 2 * SP_PANEL_ROWS * sizeof(uint16_t)); break;
        case SP_Q4_0:
            out->scale_at = k / 2 * SP_PANEL_ROWS;
            out->bytes = out->scale_at + scales;
            break;
        case SP_Q4_1:
            out->scale_at = k / 2 * SP_PANEL_ROWS;
            out->min_at = out->scale_at + scales;
            out->bytes = out->min_at + scales;
            break;
        case SP_Q8_0:
            out->scale_at = k * SP_PANEL_ROWS;
            out->bytes = out->scale_at + scales;
            break;
        case SP_FORMAT_COUNT: return SP_ERR_ARGUMENT;
    }
    return SP_OK;
}

// Where element (row r, column i) of a quantised data plane lies.
static size_t quad_byte(size_t r, size_t i) { return i / 4 * 64 + r * 4 + i % 4; }
static size_t nibble_byte(size_t r, size_t i) { return i / 8 * 64 + r * 4 + i % 4; }
static unsigned nibble_shift(size_t i) { return i / 4 % 2 * 4; }

static void pack_float(const sp_panel_layout *layout, uint8_t *dst, const uint8_t *row, size_t r) {
    const size_t size = layout->format == SP_F32 ? sizeof(float) : sizeof(uint16_t);
    for (size_t i = 0; i < layout->k; i++) {
        const size_t at = size == sizeof(float) ? i * 16 + r : i / 2 * 32 + r * 2 + i % 2;
        memcpy(dst + at * size, row + i * size, size);
    }
}

static uint32_t load32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

// A file block has element i in the low nibble of byte i and element i + 16 in its high nibble; a line has an even
// quad in its low nibbles and the next one in its high nibbles. So four words of a block become four of a panel.
static void pack_q4(const sp_panel_layout *layout, uint8_t *dst, const uint8_t *row, size_t r) {
    const size_t head = layout->min_at ? 4 : 2;  // bytes of d (and m) before the nibbles
    const uint32_t low = 0x0f0f0f0f;
    uint8_t *line = dst + r * 4;
    for (size_t g = 0; g < layout->k / GROUP; g++, row += head + GROUP / 2) {
        memcpy(dst + layout->scale_at + (g * 16 + r) * 2, row, 2);
        if (layout->min_at) memcpy(dst + layout->min_at + (g * 16 + r) * 2, row + 2, 2);
        uint32_t lines[4];
        for (size_t j = 0; j < 2; j++) {
            const uint32_t even = load32(row + head + 8 * j), odd = load32(row + head + 8 * j + 4);
            lines[j] = (even & low) | (odd & low) << 4;
            lines[j + 2] = (even >> 4 & low) | (odd & ~low);
        }
        for (size_t j = 0; j < 4; j++, line += 64) memcpy(line, &lines[j], sizeof lines[j]);
    }
}

static void pack_q8(const sp_panel_layout *layout, uint8_t *dst, const uint8_t *row, size_t r) {
    for (size_t g = 0; g < layout->k / GROUP; g++, row += 2 + GROUP) {
        memcpy(dst + layout->scale_at + (g * 16 + r) * 2, row, 2);
        for (size_t j = 0; j < GROUP; j += 4) memcpy(dst + quad_byte(r, g * GROUP + j), row + 2 + j, 4);
    }
}

void sp_panel_pack(const sp_panel_layout *layout, void *dst, const void *const rows[SP_PANEL_ROWS]) {
    memset(dst, 0, layout->bytes);
    for (size_t r = 0; r < SP_PANEL_ROWS; r++) {
        if (!rows[r]) continue;
        switch (layout->format) {
            case SP_F32:
            case SP_F16:
            case SP_BF16: pack_float(layout, dst, rows[r], r); break;
            case SP_Q4_0:
            case SP_Q4_1: pack_q4(layout, dst, rows[r], r); break;
            case SP_Q8_0: pack_q8(layout, dst, rows[r], r); break;
            case SP_FORMAT_COUNT: break;
        }
    }
}

void sp_panel_row_f32(const sp_panel_layout *layout, float *dst, const void *panel, size_t r) {
    const uint8_t *p = panel;
    const uint16_t *half = panel;
    const uint16_t *d = (const uint16_t *)(p + layout->scale_at) + r, *m = (const uint16_t *)(p + layout->min_at) + r;
    for (size_t i = 0; i < layout->k; i++) {
        const size_t g = i / GROUP * 16;
        const int q4 = p[nibble_byte(r, i)] >> nibble_shift(i) & 15;
        switch (layout->format) {
            case SP_F32: dst[i] = ((const float *)panel)[i * 16 + r]; break;
            case SP_F16: dst[i] = sp_f16_to_f32(half[i / 2 * 32 + r * 2 + i % 2]); break;
            case SP_BF16: dst[i] = sp_bf16_to_f32(half[i / 2 * 32 + r * 2 + i % 2]); break;
            case SP_Q4_0: dst[i] = sp_f16_to_f32(d[g]) * (float)(q4 - 8); break;
            case SP_Q4_1: dst[i] = fmaf(sp_f16_to_f32(d[g]), (float)q4, sp_f16_to_f32(m[g])); break;
            case SP_Q8_0: dst[i] = sp_f16_to_f32(d[g]) * (float)(int8_t)p[quad_byte(r, i)]; break;
            case SP_FORMAT_COUNT: break;
        }
    }
}
