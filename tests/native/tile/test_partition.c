// SPDX-License-Identifier: Apache-2.0
// Every cut covers its extent once, in order.
#include "tile/partition.h"

#include "test.h"

SP_TEST(partition_tiles_cover_the_extent) {
    static const uint32_t extents[] = {1, 15, 16, 17, 279, 4096, UINT32_MAX};
    for (size_t e = 0; e < sizeof extents / sizeof *extents; e++) {
        for (uint32_t step = 1; step <= 1u << 31 && step != 0; step = step < 40 ? step + 13 : step * 4) {
            const uint32_t extent = extents[e], count = sp_tile_count(extent, step);
            sp_test_label("extent=%u step=%u", extent, step);
            SP_CHECK_INT(sp_tile_range(extent, step, 0).first, 0);
            SP_CHECK_INT(sp_tile_range(extent, step, count - 1).last, extent);
            for (uint32_t i = 1; i < count && i < 50; i++)
                SP_CHECK_INT(sp_tile_range(extent, step, i).first, sp_tile_range(extent, step, i - 1).last);
        }
    }
    SP_CHECK_INT(sp_tile_count(0, 16), 0);
}

SP_TEST(partition_common_step_cuts_neither) {
    for (uint32_t head = 8; head <= 512; head += 8) {
        const uint32_t step = sp_tile_common(head, 16);
        sp_test_label("head=%u", head);
        SP_CHECK_INT(step, head % 16 ? 2 * head : head);
    }
    SP_CHECK_INT(sp_tile_common(24, 16), 48);
    SP_CHECK_INT(sp_tile_common(1, 7), 7);
}

SP_TEST(partition_coarse_only_where_everyone_gets_tiles) {
    SP_CHECK_INT(sp_tile_step(1536, 128, 32, 2), 128);
    SP_CHECK_INT(sp_tile_step(1536, 128, 32, 4), 32);
    SP_CHECK_INT(sp_tile_step(100, 128, 32, 1), 32);
}

SP_TEST(partition_parts_cover_the_blocks) {
    for (uint32_t workers = 1; workers <= 9; workers++) {
        for (uint32_t pieces = 1; pieces <= 40; pieces++) {
            for (uint32_t blocks = 1; blocks <= 20; blocks++) {
                const uint32_t parts = sp_tile_parts(pieces, blocks, workers);
                sp_test_label("workers=%u pieces=%u blocks=%u", workers, pieces, blocks);
                SP_CHECK(parts >= 1 && parts <= blocks);
                if (pieces > sp_tile_split_most(workers)) SP_CHECK_INT(parts, 1);
                else SP_CHECK(parts == blocks || parts * pieces >= SP_TILES_EACH * workers);
                uint32_t at = 0;
                for (uint32_t i = 0; i < parts; i++) {
                    const sp_range part = sp_tile_part(blocks, parts, i);
                    SP_CHECK_INT(part.first, at);
                    SP_CHECK(part.last > part.first);
                    at = part.last;
                }
                SP_CHECK_INT(at, blocks);
            }
        }
    }
}
