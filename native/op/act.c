// SPDX-License-Identifier: Apache-2.0
// Activation panels: where their planes lie, how rows become panels, and the operator that norms rows into them.
#include <string.h>

#include "op/op.h"
#include "tile/partition.h"

uint32_t sp_panels_of(sp_extent rows) {
    return sp_tile_count(rows.rowwise, SP_TOKENS) + sp_tile_count(rows.tokens - rows.rowwise, SP_TOKENS);
}

uint32_t sp_panel_of(sp_extent rows, uint32_t row) {
    if (row < rows.rowwise) return row / SP_TOKENS;
    return sp_tile_count(rows.rowwise, SP_TOKENS) + (row - rows.rowwise) / SP_TOKENS;
}

static int32_t *integers(const sp_run *run, size_t at) { return (int32_t *)(void *)(run->arena + at); }

sp_act_panel sp_act_panel_at(const sp_run *run, const sp_act *act, sp_extent rows, uint32_t p) {
    const uint32_t before = sp_tile_count(rows.rowwise, SP_TOKENS);
    const bool leading = p < before, smooth = act->smooth.u;
    sp_act_panel panel = {.first = leading ? p * SP_TOKENS : rows.rowwise + (p - before) * SP_TOKENS,
                          .rowwise = leading && smooth};
    panel.width = sp_least(SP_TOKENS, (leading ? rows.rowwise : rows.tokens) - panel.first);
    if (act->q_at == SP_ABSENT) return panel;
    panel.q = (int8_t *)run->arena + act->q_at + (size_t)(smooth ? p * SP_TOKENS : panel.first) * act->k;
    const size_t plane = panel.first * (act->k / SP_GROUP);
    panel.d = panel.rowwise ? sp_rows(run, act->scale_at) + panel.first : sp_rows(run, act->d_at) + plane;
    panel.neg = panel.rowwise ? integers(run, act->row_neg_at) + panel.first : integers(run, act->neg_at) + plane;
    if (!panel.rowwise) panel.sum = sp_rows(run, act->sum_at) + plane;
    return panel;
}

void sp_act_quantise(const sp_run *run, const sp_worker *worker, const sp_act_panel *panel, uint32_t t, size_t column,
                     const float *x, size_t n) {
    const size_t group = column / SP_GROUP * panel->width + t;
    const sp_quant_args args = {
        .x = x,
        .n = n,
        .width = panel->width,
        .q = panel->q + (column / 4 * panel->width + t) * 4,
        .d = panel->d + group,
        .neg = panel->neg + group,
        .sum = panel->sum + group,
    };
    SP_CALL(run, worker, SP_SLOT_QUANT, sp_quant_fn)(&args);
}

void sp_act_quantise_row(const sp_run *run, const sp_worker *worker, const sp_act *act, const sp_act_panel *panel,
                         uint32_t t, const float *x) {
    if (!panel->rowwise) {
        sp_act_quantise(run, worker, panel, t, 0, x, act->k);
        return;
    }
    const sp_smooth *smooth = &act->smooth;
    const sp_quant_row_args args = {
        .x = x, .u = smooth->u, .n = act->k, .q = panel->q + 4 * t, .d = panel->d + t, .neg = panel->neg + t};
    SP_CALL(run, worker, SP_SLOT_QUANT_ROW, sp_quant_row_fn)(&args);
    float *kept = sp_rows(run, act->outliers_at) + (size_t)(panel->first + t) * smooth->outlier_count;
    for (uint32_t i = 0; i < smooth->outlier_count; i++) kept[i] = x[smooth->outliers[i]];
}

static atomic_uint *arrivals(const sp_run *run, const sp_act *act) {
    return (atomic_uint *)(void *)(run->arena + act->arrived_at);
}

void sp_act_arrive_reset(const sp_run *run, const sp_act *act) {
    memset(arrivals(run, act), 0, sp_panels_of(sp_all_rows(run)) * sizeof(atomic_uint));
}

static void quantise_panel(const sp_run *run, const sp_worker *worker, const sp_act *act, const sp_act_panel *panel) {
    for (uint32_t t = 0; t < panel->width; t++) {
        const float *x = sp_rows(run, act->rows_at) + (size_t)(panel->first + t) * act->k;
        sp_act_quantise_row(run, worker, act, panel, t, x);
    }
}

void sp_act_arrive(const sp_run *run, const sp_worker *worker, const sp_act *act, uint32_t first, uint32_t n,
                   uint32_t whole) {
    for (uint32_t row = first, end; row < first + n; row = end) {
        const uint32_t p = sp_panel_of(sp_all_rows(run), row);
        const sp_act_panel panel = sp_act_panel_at(run, act, sp_all_rows(run), p);
        end = sp_least(first + n, panel.first + panel.width);
        // Acquire and release: whoever comes last sees what all the others have written.
        const uint32_t before = atomic_fetch_add_explicit(&arrivals(run, act)[p], end - row, memory_order_acq_rel);
        if (before + (end - row) == panel.width * whole) quantise_panel(run, worker, act, &panel);
    }
}

// ---- norm

static sp_extent norm_rows(const sp_norm *op, const sp_run *run) {
    return op->gather ? sp_logit_rows(run) : sp_all_rows(run);
}

uint32_t sp_norm_tiles(const sp_norm *op, sp_run *run) { return sp_panels_of(norm_rows(op, run)); }

void sp_norm_tile(const sp_norm *op, sp_run *run, uint32_t tile, const sp_worker *worker) {
    const size_t k = op->out.k;
    const bool packed = op->out.q_at != SP_ABSENT, rows = op->out.rows_at != SP_ABSENT;
    const sp_act_panel panel = sp_act_panel_at(run, &op->out, norm_rows(op, run), tile);
    for (uint32_t t = 0; t < panel.width; t++) {
        const size_t row = panel.first + t, from = op->gather ? (size_t)run->batch.logit_rows[row] : row;
        float *y = rows ? sp_rows(run, op->out.rows_at) + row * k : worker->scratch;
        SP_CALL(run, worker, SP_SLOT_RMSNORM, sp_rmsnorm_fn)
        (y, sp_rows(run, op->x_at) + from * k, op->weight, k, op->eps);
        if (packed) sp_act_quantise_row(run, worker, &op->out, &panel, t, y);
    }
}
