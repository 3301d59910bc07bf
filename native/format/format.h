// SPDX-License-Identifier: Apache-2.0
// Weight formats as they lie in model files (little endian, rows of blocks).
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef enum sp_format {
#define SP_FORMAT(id, name, block, bytes) SP_##id,
#include "format/formats.inc"
#undef SP_FORMAT
    SP_FORMAT_COUNT
} sp_format;

typedef struct sp_format_info {
    const char *name;  // as ggml spells it
    size_t block;      // elements of a block
    size_t bytes;      // bytes of a block
} sp_format_info;

// Facts about a format; NULL if `format` is none of ours.
const sp_format_info *sp_format_get(int format);

// Exact float32 values of one row of k elements; k is a multiple of the block.
void sp_format_row_f32(sp_format format, float *dst, const void *row, size_t k);
