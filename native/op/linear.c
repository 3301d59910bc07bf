// SPDX-License-Identifier: Apache-2.0
// The linear layers of a decoder block with what is fused into them.
#include <string.h>

#include "op/matmul.h"

static uint32_t ceil_div(uint32_t a, uint32_t b) { return (a + b - 1) / b; }
static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

// ---- project: x += W h

enum { PROJECT_PANELS = 4 };

uint32_t sp_project_tiles(const sp_project *op, sp_run *run) {
    (void)run;
    return ceil_div(op->weight.rows, PROJECT_PANELS * SP_PANEL_ROWS);
}

static void add_rows(const void *ctx, const sp_run *run, const sp_worker *worker, const sp_product *product,
                     const void *tile) {
    const sp_project *op = ctx;
    const uint32_t column = *(const uint32_t *)tile * SP_PANEL_ROWS;
    const uint32_t n = least(PROJECT_PANELS * SP_PANEL_ROWS, op->weight.rows - column);
    for (uint32_t t = 0; t < product->tokens; t++) {
        float *x = sp_rows(run, op->x_at) + (size_t)(product->first + t) * op->weight.rows + column;
        SP_CALL(run, worker, SP_SLOT_ADD, sp_add_fn)(x, product->y + t * product->ldy, n);
    }
}

void sp_project_tile(const sp_project *op, sp_run *run, uint32_t tile, const sp_worker *worker) {
    const uint32_t panels = (uint32_t)sp_panel_count(op->weight.rows), first = tile * PROJECT_PANELS;
    sp_tile_weights weights = {0};
    sp_tile_weights_add(&weights, &op->weight, first, least(first + PROJECT_PANELS, panels));
    sp_matmul(run, worker, &op->in, run->batch.tokens, &weights, add_rows, op, &first);
}

// ---- gate_up: two panels of each matrix make one group of 32 activations

enum { GATE_GROUPS = 4 };

// Groups of a tile: quantising four at once is cheaper than one by one, but every worker should get a few tiles.
static uint32_t gate_columns(const sp_gate_up *op, const sp_run *run) {
    const uint32_t most = GATE_GROUPS * SP_GROUP;
    return op->gate.rows / most >= 4 * run->workers ? most : SP_GROUP;
}

uint32_t sp_gate_up_tiles(const sp_gate_up *op, sp_run *run) { return ceil_div(op->gate.rows, gate_columns(op, run)); }

static void activate(const void *ctx, const sp_run *run, const sp_worker *worker, const sp_product *product,
                     const void *tile) {
    const sp_gate_up *op = ctx;
    const uint32_t column = *(const uint32_t *)tile, n = least(gate_columns(op, run), op->gate.rows - column);
    const uint32_t up = ceil_div(n, SP_PANEL_ROWS) * SP_PANEL_ROWS;
    const bool packed = op->out.q_at != SP_ABSENT, rows = op->out.rows_at != SP_ABSENT;
    sp_act_panel panel = {0};
    if (packed) panel = sp_act_panel_at(run, &op->out, run->batch.tokens, product->first / SP_TOKENS);
    for (uint32_t t = 0; t < product->tokens; t++) {
        const float *g = product->y + t * product->ldy;
        float buffer[GATE_GROUPS * SP_GROUP];
        float *y = rows ? sp_rows(run, op->out.rows_at) + (size_t)(product->first + t) * op->out.k + column : buffer;
        SP_CALL(run, worker, SP_SLOT_SWIGLU, sp_swiglu_fn)(y, g, g + up, n);
        if (packed) sp_act_quantise(run, worker, &panel, t, column, y, n);
    }
}

void sp_gate_up_tile(const sp_gate_up *op, sp_run *run, uint32_t tile, const sp_worker *worker) {
    const uint32_t panels = (uint32_t)sp_panel_count(op->gate.rows), column = tile * gate_columns(op, run);
    const uint32_t first = column / SP_PANEL_ROWS, last = least(first + gate_columns(op, run) / SP_PANEL_ROWS, panels);
    sp_tile_weights weights = {0};
    sp_tile_weights_add(&weights, &op->gate, first, last);
    sp_tile_weights_add(&weights, &op->up, first, last);
    sp_matmul(run, worker, &op->in, run->batch.tokens, &weights, activate, op, &column);
}

// ---- logits

enum { LOGITS_PANELS = 8 };

uint32_t sp_logits_tiles(const sp_logits *op, sp_run *run) {
    return run->batch.logit_count ? ceil_div(op->weight.rows, LOGITS_PANELS * SP_PANEL_ROWS) : 0;
}

static void copy_rows(const void *ctx, const sp_run *run, const sp_worker *worker, const sp_product *product,
                      const void *tile) {
    (void)worker;
    const sp_logits *op = ctx;
    const uint32_t column = *(const uint32_t *)tile * SP_PANEL_ROWS;
    const uint32_t n = least(LOGITS_PANELS * SP_PANEL_ROWS, op->weight.rows - column);
    for (uint32_t t = 0; t < product->tokens; t++) {
        float *logits = run->batch.logits + (size_t)(product->first + t) * op->weight.rows + column;
        memcpy(logits, product->y + t * product->ldy, n * sizeof *logits);
    }
}

void sp_logits_tile(const sp_logits *op, sp_run *run, uint32_t tile, const sp_worker *worker) {
    const uint32_t panels = (uint32_t)sp_panel_count(op->weight.rows), first = tile * LOGITS_PANELS;
    sp_tile_weights weights = {0};
    sp_tile_weights_add(&weights, &op->weight, first, least(first + LOGITS_PANELS, panels));
    sp_matmul(run, worker, &op->in, run->batch.logit_count, &weights, copy_rows, op, &first);
}
