// SPDX-License-Identifier: Apache-2.0
#include "op/attend.h"

static size_t scratch_floats(uint32_t rows, size_t head_dim, size_t vd) {
    return rows * (head_dim + SP_BLOCK + 2 * vd + 4) + SP_BLOCK * (head_dim + vd) + rows / sizeof(float) + 64;
}

sp_attend sp_attend_cut(const sp_attention *op, const sp_worker *worker) {
    const uint32_t rows = sp_attend_tokens(sp_attend_group(op)) * sp_attend_group(op);
    const size_t vd = sp_attend_value_row(op);
    float *p = worker->scratch;
    sp_attend w;
    w.k = p, p += SP_BLOCK * op->head_dim;
    w.v = p, p += SP_BLOCK * vd;
    w.s = p, p += rows * SP_BLOCK;
    w.q = p, p += rows * op->head_dim;
    w.o = p, p += rows * vd;
    w.ob = p, p += rows * vd;
    w.m = p, p += rows;
    w.l = p, p += rows;
    w.mb = p, p += rows;
    w.lb = p, p += rows;
    w.visible = (uint8_t *)p;
    return w;
}

size_t sp_op_scratch_bytes(uint32_t max_tokens, uint32_t heads, uint32_t kv_heads, uint32_t head_dim,
                           uint32_t d_model) {
    const uint32_t group = heads / kv_heads, rows = sp_attend_tokens(group) * group;
    const size_t attention = scratch_floats(rows, head_dim, ((size_t)head_dim + 15) / 16 * 16) * sizeof(float);
    const size_t matmul = sp_matmul_scratch_bytes(max_tokens), norm = d_model * sizeof(float);
    const size_t most = attention > matmul ? attention : matmul;
    return most > norm ? most : norm;
}

sp_attend_block sp_attend_load(const sp_attention *op, const sp_run *run, const sp_worker *worker, int32_t page,
                               uint32_t head, uint32_t keys_seen, uint32_t rows, const sp_attend *w) {
    const void *keys = sp_kv_keys(run->kv, page, op->layer, head);
    const void *values = sp_kv_values(run->kv, page, op->layer, head);
    if (run->kv->config.f32) return (sp_attend_block){keys, values, SP_SLOT_GEMM_F32};
    if (rows <= sp_kernel_of(run, worker, SP_SLOT_GEMM_F16)->mr)
        return (sp_attend_block){keys, values, SP_SLOT_GEMM_F16};
    const size_t panels = (keys_seen + 15) / 16;
    SP_CALL(run, worker, SP_SLOT_WIDEN_F16, sp_widen_fn)(w->k, keys, panels * 16 * op->head_dim);
    SP_CALL(run, worker, SP_SLOT_WIDEN_F16, sp_widen_fn)(w->v, values, keys_seen * sp_attend_value_row(op));
    return (sp_attend_block){w->k, w->v, SP_SLOT_GEMM_F32};
}

void sp_attend_rows(const sp_attention *op, const sp_run *run, const sp_worker *worker, const sp_attend *w,
                    const sp_attend_block *kv, uint32_t first, uint32_t rows, uint32_t keys, const float *q) {
    const size_t vd = sp_attend_value_row(op);
    const sp_gemm_f_args scores = {.a = q + first * op->head_dim,
                                   .lda = op->head_dim,
                                   .b = kv->k,
                                   .strip = (size_t)op->head_dim * 16,
                                   .step = 16,
                                   .y = w->s + first * SP_BLOCK,
                                   .ldy = SP_BLOCK,
                                   .m = rows - first,
                                   .k = op->head_dim};
    // Keys that come from memory are read one panel after the other, which is one stream; those in cache in wide tiles.
    const uint32_t step = kv->gemm == SP_SLOT_GEMM_F16 ? 16 : SP_BLOCK;
    for (uint32_t at = 0; at < keys; at += step) {
        sp_gemm_f_args part = scores;
        part.n = (sp_least(step, keys - at) + 15) / 16 * 16;
        part.b = (const uint8_t *)kv->k + at * op->head_dim * run->kv->element;
        part.y = scores.y + at;
        sp_gemm_f(run, worker, kv->gemm, part);
    }
    const sp_softmax_args softmax = {.s = w->s + first * SP_BLOCK,
                                     .ld = SP_BLOCK,
                                     .rows = rows - first,
                                     .visible = w->visible + first,
                                     .max = w->mb + first,
                                     .sum = w->lb + first};
    SP_CALL(run, worker, SP_SLOT_SOFTMAX, sp_softmax_fn)(&softmax);
    const sp_gemm_f_args sums = {.a = w->s + first * SP_BLOCK,
                                 .lda = SP_BLOCK,
                                 .b = kv->v,
                                 .strip = 16,
                                 .step = vd,
                                 .y = w->ob + first * vd,
                                 .ldy = vd,
                                 .m = rows - first,
                                 .n = vd,
                                 .k = keys};
    sp_gemm_f(run, worker, kv->gemm, sums);
}

bool sp_attend_whole_rows(const sp_attention *op, const sp_run *run, uint32_t row) {
    return op->out.q_at != SP_ABSENT && (op->head_dim % SP_GROUP || (op->out.smooth.u && row < run->batch.rowwise));
}

void sp_attend_store(const sp_attention *op, const sp_run *run, const sp_worker *worker, uint32_t row, uint32_t head,
                     const float *o, size_t ldo, const float *l, size_t ldl, float *y) {
    const uint32_t group = sp_attend_group(op), d = op->head_dim;
    const size_t column = (size_t)head * group * d;
    if (op->out.rows_at != SP_ABSENT) y = sp_rows(run, op->out.rows_at) + row * op->out.k + column;
    for (uint32_t r = 0; r < group; r++)
        SP_CALL(run, worker, SP_SLOT_FINISH, sp_finish_fn)(y + r * d, o + r * ldo, l[r * ldl], d);
    if (op->out.q_at == SP_ABSENT || sp_attend_whole_rows(op, run, row)) return;
    const sp_extent all = sp_all_rows(run);
    const sp_act_panel panel = sp_act_panel_at(run, &op->out, all, sp_panel_of(all, row));
    sp_act_quantise(run, worker, &panel, row - panel.first, column, y, (size_t)group * d);
}
