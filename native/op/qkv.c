// SPDX-License-Identifier: Apache-2.0
// Q, K and V as one projection. A tile covers whole heads, so the rotation happens while the tile is in cache, and
// K and V go straight into their pages in the layout that attention reads.
#include <string.h>

#include "op/matmul.h"
#include "tile/partition.h"

typedef struct qkv_tile {
    uint32_t matrix;  // 0, 1, 2 for Q, K, V
    sp_range rows;    // of that matrix: whole heads, whole panels
} qkv_tile;

static uint32_t tile_rows(const sp_qkv *op) { return sp_tile_common(op->head_dim, SP_PANEL_ROWS); }

static qkv_tile tile_at(const sp_qkv *op, uint32_t tile) {
    for (uint32_t i = 0;; i++) {
        const uint32_t rows = op->weights[i].rows, count = sp_tile_count(rows, tile_rows(op));
        if (tile < count || i == 2) return (qkv_tile){i, sp_tile_range(rows, tile_rows(op), tile)};
        tile -= count;
    }
}

uint32_t sp_qkv_tiles(const sp_qkv *op, sp_run *run) {
    (void)run;
    uint32_t count = 0;
    for (int i = 0; i < 3; i++) count += sp_tile_count(op->weights[i].rows, tile_rows(op));
    return count;
}

static void store_key(const sp_run *run, const sp_worker *worker, const sp_qkv *op, int32_t page, uint32_t slot,
                      uint32_t head, const float *x) {
    const size_t at = (size_t)slot / 16 * op->head_dim * 16 + slot % 16;
    void *keys = sp_kv_keys(run->kv, page, op->layer, head);
    if (run->kv->config.f32)
        for (uint32_t i = 0; i < op->head_dim; i++) ((float *)keys)[at + i * 16] = x[i];
    else SP_CALL(run, worker, SP_SLOT_NARROW_F16, sp_narrow_fn)((uint16_t *)keys + at, 16, x, op->head_dim);
}

static void store_value(const sp_run *run, const sp_worker *worker, const sp_qkv *op, int32_t page, uint32_t slot,
                        uint32_t head, const float *x) {
    const size_t at = slot * run->kv->value_row;
    void *values = sp_kv_values(run->kv, page, op->layer, head);
    if (run->kv->config.f32) memcpy((float *)values + at, x, op->head_dim * sizeof *x);
    else SP_CALL(run, worker, SP_SLOT_NARROW_F16, sp_narrow_fn)((uint16_t *)values + at, 1, x, op->head_dim);
}

static void rotate_and_store(const void *ctx, const sp_run *run, const sp_worker *worker, const sp_product *product,
                             const void *tile_ptr) {
    const sp_qkv *op = ctx;
    const qkv_tile *tile = tile_ptr;
    const uint32_t head_dim = op->head_dim, half = head_dim / 2;
    const sp_span *span = run->batch.spans;
    for (uint32_t t = 0; t < product->tokens; t++) {
        const uint32_t row = product->first + t;
        while (row >= span->row0 + span->rows) span++;
        const int32_t position = run->batch.positions[row];
        const int32_t page = span->pages[position / SP_KV_PAGE];
        const uint32_t slot = (uint32_t)position % SP_KV_PAGE;
        const float *c = sp_rows(run, op->cos_at) + (size_t)row * half,
                    *s = sp_rows(run, op->sin_at) + (size_t)row * half;
        for (uint32_t at = 0; at < tile->rows.last - tile->rows.first; at += head_dim) {
            const float *x = product->y + t * product->ldy + at;
            const uint32_t head = (tile->rows.first + at) / head_dim;
            float rotated[SP_TILE_PANELS * SP_PANEL_ROWS];
            if (tile->matrix == 0) {
                float *q = sp_rows(run, op->q_at) + (size_t)row * op->weights[0].rows + tile->rows.first + at;
                SP_CALL(run, worker, SP_SLOT_ROPE, sp_rope_fn)(q, x, c, s, half, op->q_scale);
            } else if (tile->matrix == 1) {
                SP_CALL(run, worker, SP_SLOT_ROPE, sp_rope_fn)(rotated, x, c, s, half, 1.0f);
                store_key(run, worker, op, page, slot, head, rotated);
            } else {
                store_value(run, worker, op, page, slot, head, x);
            }
        }
    }
}

void sp_qkv_tile(const sp_qkv *op, sp_run *run, uint32_t index, const sp_worker *worker) {
    const qkv_tile tile = tile_at(op, index);
    sp_tile_weights weights = {0};
    sp_tile_weights_add(&weights, &op->weights[tile.matrix], tile.rows.first / SP_PANEL_ROWS,
                        sp_tile_count(tile.rows.last, SP_PANEL_ROWS));
    const sp_matmul m = {.in = &op->in,
                         .rows = sp_all_rows(run),
                         .weights = &weights,
                         .epilogue = rotate_and_store,
                         .op = op,
                         .tile = &tile};
    sp_matmul_run(run, worker, &m);
}
