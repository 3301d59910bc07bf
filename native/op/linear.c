// SPDX-License-Identifier: Apache-2.0
// The linear layers of a decoder block with what is fused into them.
#include <string.h>

#include "op/matmul.h"
#include "tile/partition.h"

// Adds the panels that hold rows [first, last) of a matrix to a tile; first is the beginning of a panel.
static void add_panels(sp_tile_weights *tile, const sp_linear *linear, sp_range rows) {
    sp_tile_weights_add(tile, linear, rows.first / SP_PANEL_ROWS, sp_tile_count(rows.last, SP_PANEL_ROWS));
}

// ---- project: x += W h

enum { PROJECT_ROWS = 64 };

uint32_t sp_project_tiles(const sp_project *op, sp_run *run) {
    (void)run;
    return sp_tile_count(op->weight.rows, PROJECT_ROWS);
}

static void add_rows(const void *ctx, const sp_run *run, const sp_worker *worker, const sp_product *product,
                     const void *tile) {
    const sp_project *op = ctx;
    const sp_range *rows = tile;
    for (uint32_t t = 0; t < product->tokens; t++) {
        float *x = sp_rows(run, op->x_at) + (size_t)(product->first + t) * op->weight.rows + rows->first;
        SP_CALL(run, worker, SP_SLOT_ADD, sp_add_fn)(x, product->y + t * product->ldy, rows->last - rows->first);
    }
}

void sp_project_tile(const sp_project *op, sp_run *run, uint32_t tile, const sp_worker *worker) {
    const sp_range rows = sp_tile_range(op->weight.rows, PROJECT_ROWS, tile);
    sp_tile_weights weights = {0};
    add_panels(&weights, &op->weight, rows);
    const sp_matmul m = {
        .in = &op->in, .rows = sp_all_rows(run), .weights = &weights, .epilogue = add_rows, .op = op, .tile = &rows};
    sp_matmul_run(run, worker, &m);
}

// ---- gate_up: two panels of each matrix make one group of 32 activations. A rowwise row is complete when the last
// tile has made its columns: that tile quantises it. So that the last tiles, which run side by side, do not leave this
// to the slowest of them, each begins with other tokens.

enum { GATE_MOST = 4 * SP_GROUP };

// Columns of a tile: quantising four groups at once is cheaper than one by one, where every worker still gets tiles.
static uint32_t gate_step(const sp_gate_up *op, const sp_run *run) {
    return sp_tile_step(op->gate.rows, GATE_MOST, SP_GROUP, run->workers);
}

static uint32_t gate_tiles(const sp_gate_up *op, const sp_run *run) {
    return sp_tile_count(op->gate.rows, gate_step(op, run));
}

uint32_t sp_gate_up_tiles(const sp_gate_up *op, sp_run *run) {
    if (op->out.arrived_at != SP_ABSENT) sp_act_arrive_reset(run, &op->out);
    return gate_tiles(op, run);
}

static void activate(const void *ctx, const sp_run *run, const sp_worker *worker, const sp_product *product,
                     const void *tile) {
    const sp_gate_up *op = ctx;
    const uint32_t column = ((const sp_range *)tile)->first, n = ((const sp_range *)tile)->last - column;
    const uint32_t up = sp_tile_count(n, SP_PANEL_ROWS) * SP_PANEL_ROWS;
    const bool packed = op->out.q_at != SP_ABSENT, rows = op->out.rows_at != SP_ABSENT;
    const sp_extent all = sp_all_rows(run);
    const sp_act_panel panel = sp_act_panel_at(run, &op->out, all, sp_panel_of(all, product->first));
    for (uint32_t t = 0; t < product->tokens; t++) {
        const float *g = product->y + t * product->ldy;
        float buffer[GATE_MOST];
        float *y = rows ? sp_rows(run, op->out.rows_at) + (size_t)(product->first + t) * op->out.k + column : buffer;
        SP_CALL(run, worker, SP_SLOT_SWIGLU, sp_swiglu_fn)(y, g, g + up, n);
        if (packed && !panel.rowwise) sp_act_quantise(run, worker, &panel, t, column, y, n);
    }
    if (packed && panel.rowwise)
        sp_act_arrive(run, worker, &op->out, product->first, product->tokens, gate_tiles(op, run));
}

void sp_gate_up_tile(const sp_gate_up *op, sp_run *run, uint32_t tile, const sp_worker *worker) {
    const sp_range columns = sp_tile_range(op->gate.rows, gate_step(op, run), tile);
    sp_tile_weights weights = {0};
    add_panels(&weights, &op->gate, columns);
    add_panels(&weights, &op->up, columns);
    const sp_matmul m = {.in = &op->in,
                         .rows = sp_all_rows(run),
                         .weights = &weights,
                         .epilogue = activate,
                         .op = op,
                         .tile = &columns,
                         .turn = tile};
    sp_matmul_run(run, worker, &m);
}

// ---- logits

enum { LOGITS_ROWS = 128 };

uint32_t sp_logits_tiles(const sp_logits *op, sp_run *run) {
    return run->batch.logit_count ? sp_tile_count(op->weight.rows, LOGITS_ROWS) : 0;
}

static void copy_rows(const void *ctx, const sp_run *run, const sp_worker *worker, const sp_product *product,
                      const void *tile) {
    (void)worker;
    const sp_logits *op = ctx;
    const sp_range *rows = tile;
    for (uint32_t t = 0; t < product->tokens; t++) {
        float *logits = run->batch.logits + (size_t)(product->first + t) * op->weight.rows + rows->first;
        memcpy(logits, product->y + t * product->ldy, (rows->last - rows->first) * sizeof *logits);
    }
}

void sp_logits_tile(const sp_logits *op, sp_run *run, uint32_t tile, const sp_worker *worker) {
    const sp_range rows = sp_tile_range(op->weight.rows, LOGITS_ROWS, tile);
    sp_tile_weights weights = {0};
    add_panels(&weights, &op->weight, rows);
    const sp_matmul m = {
        .in = &op->in, .rows = sp_logit_rows(run), .weights = &weights, .epilogue = copy_rows, .op = op, .tile = &rows};
    sp_matmul_run(run, worker, &m);
}
