// SPDX-License-Identifier: Apache-2.0
// Calibration: the largest |x| of each column of a linear layer's input, over all tokens of all runs.
//
// Sizes are compared as bit patterns, where NaN is larger than infinity and infinity larger than the rest. So a maximum
// does not depend on the order of rows, tiles or runs, and a NaN that was ever seen stays.
#include "base/dtype.h"
#include "op/op.h"
#include "tile/partition.h"

enum { OBSERVE_COLUMNS = 128 };

uint32_t sp_observe_tiles(const sp_observe *op, sp_run *run) {
    (void)run;
    return sp_tile_count((uint32_t)op->in.k, OBSERVE_COLUMNS);
}

void sp_observe_tile(const sp_observe *op, sp_run *run, uint32_t tile, const sp_worker *worker) {
    (void)worker;
    const sp_range columns = sp_tile_range((uint32_t)op->in.k, OBSERVE_COLUMNS, tile);
    for (uint32_t t = 0; t < run->batch.tokens; t++) {
        const float *x = sp_rows(run, op->in.rows_at) + t * op->in.k;
        for (uint32_t i = columns.first; i < columns.last; i++) {
            const uint32_t size = sp_f32_bits(x[i]) & 0x7fffffffu;
            if (size > sp_f32_bits(op->peaks[i])) op->peaks[i] = sp_f32_from_bits(size);
        }
    }
}
