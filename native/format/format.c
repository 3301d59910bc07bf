// SPDX-License-Identifier: Apache-2.0
// Decoding of file blocks to float32: the plainest statement of what each format means, and the oracle of packing.
#include "format/format.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"

static const sp_format_info infos[SP_FORMAT_COUNT] = {
#define SP_FORMAT(id, name, block, bytes) [SP_##id] = {name, block, bytes},
#include "format/formats.inc"
#undef SP_FORMAT
};

const sp_format_info *sp_format_get(int format) {
    return format >= 0 && format < SP_FORMAT_COUNT ? &infos[format] : NULL;
}

static uint16_t load16(const uint8_t *p) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

// Blocks of 4-bit values keep element i in the low nibble of byte i and element i + 16 in its high nibble.
static int nibble(const uint8_t *q, size_t i) { return i < 16 ? q[i] & 15 : q[i - 16] >> 4; }

void sp_format_row_f32(sp_format format, float *dst, const void *row, size_t k) {
    const uint8_t *p = row;
    const size_t block = infos[format].block, bytes = infos[format].bytes;
    for (size_t i = 0; i < k; i++) {
        const uint8_t *b = p + i / block * bytes;
        const size_t j = i % block;
        switch (format) {
            case SP_F32: memcpy(&dst[i], b, sizeof(float)); break;
            case SP_F16: dst[i] = sp_f16_to_f32(load16(b)); break;
            case SP_BF16: dst[i] = sp_bf16_to_f32(load16(b)); break;
            case SP_Q4_0: dst[i] = sp_f16_to_f32(load16(b)) * (float)(nibble(b + 2, j) - 8); break;
            case SP_Q4_1:
                dst[i] = fmaf(sp_f16_to_f32(load16(b)), (float)nibble(b + 4, j), sp_f16_to_f32(load16(b + 2)));
                break;
            case SP_Q8_0: dst[i] = sp_f16_to_f32(load16(b)) * (float)(int8_t)b[2 + j]; break;
            case SP_FORMAT_COUNT: break;
        }
    }
}
