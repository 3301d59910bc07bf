// SPDX-License-Identifier: Apache-2.0
#include "tile/partition.h"

uint32_t sp_tile_common(uint32_t a, uint32_t b) {
    uint32_t x = a, y = b;
    while (y) {
        const uint32_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

uint32_t sp_tile_step(uint32_t extent, uint32_t coarse, uint32_t fine, uint32_t workers) {
    return extent / coarse >= SP_TILES_EACH * workers ? coarse : fine;
}

uint32_t sp_tile_split_most(uint32_t workers) { return workers > 1 ? SP_TILES_EACH * workers - 1 : 0; }

uint32_t sp_tile_parts(uint32_t pieces, uint32_t blocks, uint32_t workers) {
    if (pieces > sp_tile_split_most(workers)) return 1;
    return sp_least(sp_tile_count(SP_TILES_EACH * workers, pieces), blocks);
}

sp_range sp_tile_part(uint32_t extent, uint32_t parts, uint32_t index) {
    const uint64_t whole = extent;
    return (sp_range){(uint32_t)(whole * index / parts), (uint32_t)(whole * (index + 1) / parts)};
}
