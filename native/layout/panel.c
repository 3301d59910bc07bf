// SPDX-License-Identifier: Apache-2.0
#include "layout/panel.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"

enum { GROUP = 32, MAX_K = 1 << 24 };

static size_t padded(size_t bytes) { return (bytes + SP_ALIGN - 1) / SP_ALIGN * SP_ALIGN; }

// Bytes of a block of two groups; 0 for float formats.
static size_t block_bytes(sp_format format) {
    switch (format) {
        case SP_Q4_0: return SP_BLOCK_Q4S;
        case SP_Q4_1: return SP_BLOCK_Q4A;
        case SP_Q8_0: return SP_BLOCK_Q8S;
        default: return 0;
    }
}

sp_status sp_panel_layout_make(sp_panel_layout *out, int format, size_t k) {
    const sp_format_info *info = sp_format_get(format);
    if (!info || k == 0 || k > MAX_K || k % (info->block == 1 ? 8 : info->block)) return SP_ERR_ARGUMENT;
    const size_t block = block_bytes((sp_format)format), pairs = (k + 2 * GROUP - 1) / (2 * GROUP);
    const size_t bytes = block ? pairs * block : padded(k * SP_PANEL_ROWS * info->bytes);
    *out = (sp_panel_layout){.format = (sp_format)format, .k = k, .bytes = bytes};
    return SP_OK;
}

// Where the parts of group g lie within a panel, in bytes.
static size_t scales_at(sp_format format, size_t g) { return g / 2 * block_bytes(format) + g % 2 * 32; }
static size_t minima_at(sp_format format, size_t g) { return scales_at(format, g) + SP_BLOCK_SCALES; }
static size_t data_at(sp_format format, size_t g) {
    const size_t head = format == SP_Q4_1 ? 2 * SP_BLOCK_SCALES : SP_BLOCK_SCALES;
    return g / 2 * block_bytes(format) + head + g % 2 * (format == SP_Q8_0 ? 512 : 256);
}

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
    const sp_format format = layout->format;
    const size_t head = format == SP_Q4_1 ? 4 : 2;  // bytes of d (and m) before the nibbles
    const uint32_t low = 0x0f0f0f0f;
    for (size_t g = 0; g < layout->k / GROUP; g++, row += head + GROUP / 2) {
        memcpy(dst + scales_at(format, g) + r * 2, row, 2);
        if (format == SP_Q4_1) memcpy(dst + minima_at(format, g) + r * 2, row + 2, 2);
        uint32_t lines[4];
        for (size_t j = 0; j < 2; j++) {
            const uint32_t even = load32(row + head + 8 * j), odd = load32(row + head + 8 * j + 4);
            lines[j] = (even & low) | (odd & low) << 4;
            lines[j + 2] = (even >> 4 & low) | (odd & ~low);
        }
        uint8_t *line = dst + data_at(format, g) + r * 4;
        for (size_t j = 0; j < 4; j++, line += 64) memcpy(line, &lines[j], sizeof lines[j]);
    }
}

static void pack_q8(const sp_panel_layout *layout, uint8_t *dst, const uint8_t *row, size_t r) {
    for (size_t g = 0; g < layout->k / GROUP; g++, row += 2 + GROUP) {
        uint8_t *quads = dst + data_at(SP_Q8_0, g) + r * 4;
        memcpy(dst + scales_at(SP_Q8_0, g) + r * 2, row, 2);
        for (size_t j = 0; j < GROUP; j += 4) memcpy(quads + j / 4 * 64, row + 2 + j, 4);
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

static uint16_t half_at(const uint8_t *panel, size_t at, size_t i) {
    uint16_t v;
    memcpy(&v, panel + at + i * sizeof v, sizeof v);
    return v;
}

static float minimum_at(sp_format format, const uint8_t *panel, size_t g, size_t r) {
    return format == SP_Q4_1 ? sp_f16_to_f32(half_at(panel, minima_at(format, g), r)) : 0.0f;
}

// Element i of a group; `data` is the row's first byte in it.
static inline float value_f32(sp_format format, const uint8_t *data, float d, float m, size_t i) {
    if (format == SP_Q8_0) return d * (float)(int8_t)data[i / 4 * 64 + i % 4];
    const int q4 = data[i / 8 * 64 + i % 4] >> (i / 4 % 2 * 4) & 15;
    return format == SP_Q4_0 ? d * (float)(q4 - 8) : fmaf(d, (float)q4, m);
}

static void group_f32(sp_format format, float *dst, const uint8_t *panel, size_t g, size_t r) {
    const float d = sp_f16_to_f32(half_at(panel, scales_at(format, g), r)), m = minimum_at(format, panel, g, r);
    const uint8_t *data = panel + data_at(format, g) + r * 4;
    for (size_t i = 0; i < GROUP; i++) dst[i] = value_f32(format, data, d, m, i);
}

void sp_panel_column_f32(const sp_panel_layout *layout, float dst[SP_PANEL_ROWS], const void *panel, size_t i) {
    const sp_format format = layout->format;
    const size_t g = i / GROUP;
    for (size_t r = 0; r < SP_PANEL_ROWS; r++) {
        const float d = sp_f16_to_f32(half_at(panel, scales_at(format, g), r)), m = minimum_at(format, panel, g, r);
        const uint8_t *data = (const uint8_t *)panel + data_at(format, g) + r * 4;
        dst[r] = value_f32(format, data, d, m, i % GROUP);
    }
}

void sp_panel_row_f32(const sp_panel_layout *layout, float *dst, const void *panel, size_t r) {
    if (block_bytes(layout->format)) {
        for (size_t g = 0; g < layout->k / GROUP; g++) group_f32(layout->format, dst + g * GROUP, panel, g, r);
        return;
    }
    for (size_t i = 0; i < layout->k; i++) {
        if (layout->format == SP_F32) {
            dst[i] = ((const float *)panel)[i * 16 + r];
        } else {
            const uint16_t v = half_at(panel, 0, i / 2 * 32 + r * 2 + i % 2);
            dst[i] = layout->format == SP_F16 ? sp_f16_to_f32(v) : sp_bf16_to_f32(v);
        }
    }
}
