// SPDX-License-Identifier: Apache-2.0
// Activation panels: where their planes lie, and the operators that fill them from rows.
#include "op/op.h"

sp_act_panel sp_act_panel_at(const sp_run *run, const sp_act *act, uint32_t tokens, uint32_t p) {
    const uint32_t first = p * SP_TOKENS;
    const size_t plane = (size_t)first * (act->k / SP_GROUP);
    return (sp_act_panel){
        .width = tokens - first < SP_TOKENS ? tokens - first : SP_TOKENS,
        .q = (int8_t *)run->arena + act->q_at + first * act->k,
        .d = sp_rows(run, act->d_at) + plane,
        .neg = (int32_t *)(void *)(run->arena + act->neg_at) + plane,
        .sum = sp_rows(run, act->sum_at) + plane,
    };
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

static uint32_t panels_of(uint32_t tokens) { return (tokens + SP_TOKENS - 1) / SP_TOKENS; }

uint32_t sp_norm_tiles(const sp_norm *op, sp_run *run) {
    return panels_of(op->gather ? run->batch.logit_count : run->batch.tokens);
}

void sp_norm_tile(const sp_norm *op, sp_run *run, uint32_t tile, const sp_worker *worker) {
    const uint32_t tokens = op->gather ? run->batch.logit_count : run->batch.tokens, first = tile * SP_TOKENS;
    const size_t k = op->out.k;
    const bool packed = op->out.q_at != SP_ABSENT, rows = op->out.rows_at != SP_ABSENT;
    sp_act_panel panel = {.width = tokens - first < SP_TOKENS ? tokens - first : SP_TOKENS};
    if (packed) panel = sp_act_panel_at(run, &op->out, tokens, tile);
    for (uint32_t t = 0; t < panel.width; t++) {
        const size_t row = op->gather ? (size_t)run->batch.logit_rows[first + t] : first + t;
        float *y = rows ? sp_rows(run, op->out.rows_at) + (first + t) * k : worker->scratch;
        SP_CALL(run, worker, SP_SLOT_RMSNORM, sp_rmsnorm_fn)
        (y, sp_rows(run, op->x_at) + row * k, op->weight, k, op->eps);
        if (packed) sp_act_quantise(run, worker, &panel, t, 0, y, k);
    }
}

uint32_t sp_pack_tiles(const sp_pack *op, sp_run *run) {
    (void)op;
    return panels_of(run->batch.tokens);
}

void sp_pack_tile(const sp_pack *op, sp_run *run, uint32_t tile, const sp_worker *worker) {
    const sp_act_panel panel = sp_act_panel_at(run, &op->act, run->batch.tokens, tile);
    for (uint32_t t = 0; t < panel.width; t++) {
        const float *x = sp_rows(run, op->act.rows_at) + (size_t)(tile * SP_TOKENS + t) * op->act.k;
        sp_act_quantise(run, worker, &panel, t, 0, x, op->act.k);
    }
}
