// SPDX-License-Identifier: Apache-2.0
// The partitioner: how an extent (rows of weights, tokens, key blocks) is cut into tiles. Pure arithmetic: it knows
// neither threads nor kernels, and no cut changes a bit of a result.
#pragma once

#include <stdint.h>

// Tiles that each worker should find in a queue: few enough to cost nothing, enough to even out their pace.
enum { SP_TILES_EACH = 4 };

// [first, last)
typedef struct sp_range {
    uint32_t first, last;
} sp_range;

static inline uint32_t sp_least(uint32_t a, uint32_t b) { return a < b ? a : b; }

// The number of tiles of `step` in an extent, the last one ragged.
static inline uint32_t sp_tile_count(uint32_t extent, uint32_t step) { return extent / step + (extent % step != 0); }

// Tile `index` of them.
static inline sp_range sp_tile_range(uint32_t extent, uint32_t step, uint32_t index) {
    const uint32_t first = index * step;
    return (sp_range){first, first + sp_least(step, extent - first)};
}

// The smallest multiple of both: a step that cuts neither a head nor a panel.
uint32_t sp_tile_common(uint32_t a, uint32_t b);

// The coarse step if it leaves every worker its tiles, else the fine one.
uint32_t sp_tile_step(uint32_t extent, uint32_t coarse, uint32_t fine, uint32_t workers);

// Into how many parts each of `pieces` equal pieces of work is split, so that every worker finds its tiles; a piece
// of `blocks` blocks has at most as many parts. 1 where pieces are enough, or nobody is there to share them with.
uint32_t sp_tile_parts(uint32_t pieces, uint32_t blocks, uint32_t workers);

// The most pieces that sp_tile_parts splits.
uint32_t sp_tile_split_most(uint32_t workers);

// Part `index` of `parts` of an extent; sizes differ by one at most.
sp_range sp_tile_part(uint32_t extent, uint32_t parts, uint32_t index);
