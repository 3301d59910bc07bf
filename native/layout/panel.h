// SPDX-License-Identifier: Apache-2.0
// The packed layouts that every worker on every instruction set reads.
//
// A weight matrix [rows][k] is cut into panels of 16 rows. Quantised panels are a sequence of blocks of 64 k (two
// groups of 32, the second one zero where k ends with an odd group). A block is one run of whole 64-byte lines, so a
// worker reads a panel, and panel after panel, as a single stream: hardware prefetching is at its best on one.
//
//   scales    [2][16] float16
//   minima    [2][16] float16 (affine formats)
//   data      [2] groups of quads of 4 bytes along k, [8][16][4]: one line is 16 rows x 4 k. 4-bit formats put two
//             neighbouring quads into one line: the even one in the low nibbles.
//
// Float panels are float32 [k][16]; float16 and bfloat16 [k/2][16][2]. Rows beyond the matrix are zero. The size of a
// panel depends on format and k alone, so panels are an array.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "format/format.h"

#define SP_PANEL_ROWS 16

typedef struct sp_panel_layout {
    sp_format format;
    size_t k;
    size_t bytes;  // of one panel
} sp_panel_layout;

// Parts of a quantised block, in bytes.
enum {
    SP_BLOCK_SCALES = 64,  // of two groups; minima take as much
    SP_BLOCK_Q4S = SP_BLOCK_SCALES + 2 * 256,
    SP_BLOCK_Q4A = 2 * SP_BLOCK_SCALES + 2 * 256,
    SP_BLOCK_Q8S = SP_BLOCK_SCALES + 2 * 512,
};

// The layout of panels for rows of k elements. SP_ERR_ARGUMENT if k is 0, larger than 2^24 or no multiple of the
// format's block (8 for float formats).
sp_status sp_panel_layout_make(sp_panel_layout *out, int format, size_t k);

// Number of panels that hold `rows` rows.
static inline size_t sp_panel_count(size_t rows) { return (rows + SP_PANEL_ROWS - 1) / SP_PANEL_ROWS; }

// Packs 16 file rows into one panel; a NULL row becomes zeros. `dst` is 64-byte aligned.
void sp_panel_pack(const sp_panel_layout *layout, void *dst, const void *const rows[SP_PANEL_ROWS]);

// Row r (0..15) of a panel as float32 values, the same bits that sp_format_row_f32 gives for the file's row.
void sp_panel_row_f32(const sp_panel_layout *layout, float *dst, const void *panel, size_t r);

// Column i of a quantised panel, 16 float32 values: the same bits, across the rows.
void sp_panel_column_f32(const sp_panel_layout *layout, float dst[SP_PANEL_ROWS], const void *panel, size_t i);
