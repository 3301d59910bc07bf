// SPDX-License-Identifier: Apache-2.0
// Token ids to rows of x, and the cosines and sines of the batch's positions.
#include "kernel/rope/sincos.h"
#include "op/op.h"

uint32_t sp_embed_tiles(const sp_embed *op, sp_run *run) {
    (void)op;
    return (run->batch.tokens + SP_TOKENS - 1) / SP_TOKENS;
}

void sp_embed_tile(const sp_embed *op, sp_run *run, uint32_t tile, const sp_worker *worker) {
    (void)worker;
    const sp_panel_layout *layout = &op->table.layout;
    const uint32_t first = tile * SP_TOKENS;
    const uint32_t last = first + SP_TOKENS < run->batch.tokens ? first + SP_TOKENS : run->batch.tokens;
    for (uint32_t t = first; t < last; t++) {
        const uint32_t id = (uint32_t)run->batch.ids[t];
        const uint8_t *panel = op->table.panels + id / SP_PANEL_ROWS * layout->bytes;
        sp_panel_row_f32(layout, sp_rows(run, op->x_at) + t * layout->k, panel, id % SP_PANEL_ROWS);
        sp_rope_table(sp_rows(run, op->cos_at) + (size_t)t * op->half, sp_rows(run, op->sin_at) + (size_t)t * op->half,
                      op->inv_freq, op->half, run->batch.positions[t]);
    }
}
