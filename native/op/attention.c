// SPDX-License-Identifier: Apache-2.0
// Attention over paged keys and values, defined once for prefill and decode.
//
// Keys come in blocks of 64 at absolute positions (one page). Per block and query row: scores by fma chains over
// head_dim, block maximum, exp2, 16-lane sum, P V started from zero; blocks are merged left to right. Scores are in
// units of log2: q carries 1/sqrt(head_dim) * log2(e). So the result of a row depends on its own position and pages
// only: not on how many rows share its tile, nor on who computes which block.
//
//  * A span of several tokens is cut into tiles of query rows x one key/value head; a tile walks its blocks.
//  * A span of one token (decode) has few rows, so its blocks are split into parts over the workers. Each part leaves
//    the (o, m, l) of each of its blocks in the arena; whoever finishes last merges them in order.
//
// Blocks beyond a row's position are skipped. Within a tile a row may meet keys it cannot see: their p is zero, which
// (values being finite) changes no bit but the sign of a zero, and the last addition of +0 (finish) removes that.
#include <string.h>

#include "op/attend.h"

static uint32_t blocks_of(const sp_span *span) { return sp_tile_count((uint32_t)span->start + span->rows, SP_BLOCK); }

// ---- spans of several tokens

static void prefill_tile(const sp_attention *op, sp_run *run, const sp_span *span, uint32_t head, uint32_t token,
                         const sp_worker *worker) {
    const uint32_t group = sp_attend_group(op), tokens = sp_least(sp_attend_tokens(group), span->rows - token),
                   rows = tokens * group;
    const size_t vd = sp_attend_value_row(op), row_floats = (size_t)op->heads * op->head_dim;
    const uint32_t start = (uint32_t)span->start + token;
    const sp_attend w = sp_attend_cut(op, worker);
    for (uint32_t t = 0; t < tokens; t++) {
        const float *q = sp_rows(run, op->q_at) + (span->row0 + token + t) * row_floats + head * group * op->head_dim;
        memcpy(w.q + (size_t)t * group * op->head_dim, q, (size_t)group * op->head_dim * sizeof *q);
    }
    for (uint32_t b = 0; b * SP_BLOCK < start + tokens; b++) {
        const uint32_t at = b * SP_BLOCK, first_token = at > start ? at - start : 0, first = first_token * group;
        const uint32_t keys = sp_least(SP_BLOCK, start + tokens - at);
        for (uint32_t r = first; r < rows; r++) w.visible[r] = (uint8_t)sp_least(SP_BLOCK, start + r / group + 1 - at);
        const sp_attend_block kv = sp_attend_load(op, run, worker, span->pages[b], head, keys, rows - first, &w);
        sp_attend_rows(op, run, worker, &w, &kv, first, rows, keys, w.q);
        if (b == 0) {
            memcpy(w.o, w.ob, rows * vd * sizeof *w.o);
            memcpy(w.m, w.mb, rows * sizeof *w.m);
            memcpy(w.l, w.lb, rows * sizeof *w.l);
            continue;
        }
        const sp_merge_args merge = {.o = w.o + first * vd,
                                     .m = w.m + first,
                                     .l = w.l + first,
                                     .ob = w.ob + first * vd,
                                     .mb = w.mb + first,
                                     .lb = w.lb + first,
                                     .ldo = vd,
                                     .ldb = vd,
                                     .rows = rows - first,
                                     .d = op->head_dim};
        SP_CALL(run, worker, SP_SLOT_MERGE, sp_merge_fn)(&merge);
    }
    for (uint32_t t = 0; t < tokens; t++) {
        const uint32_t r = t * group;  // the queries are not needed any more: their room takes the result
        sp_attend_store(op, run, worker, span->row0 + token + t, head, w.o + r * vd, vd, w.l + r, 1, w.q);
    }
    if (sp_attend_whole_rows(op, run, span->row0))
        sp_act_arrive(run, worker, &op->out, span->row0 + token, tokens, op->kv_heads);
}

// ---- spans of one token, split into parts

// The partial results of one split span: [kv_heads][blocks][group] of o [vd], m, l.
typedef struct partials {
    float *at;
    size_t floats;         // of one row of one block
    atomic_uint *arrived;  // [kv_heads]
} partials;

static size_t partial_floats(const sp_attention *op) { return sp_attend_value_row(op) + 16; }

// Parts that a one-token span's blocks are split into: enough to keep all workers busy.
static uint32_t parts_of(const sp_attention *op, const sp_run *run, const sp_span *span) {
    return sp_tile_parts(op->kv_heads * run->batch.span_count, blocks_of(span), run->workers);
}

// Split spans lie one after the other; counters first.
static partials partials_of(const sp_attention *op, const sp_run *run, const sp_span *span) {
    size_t floats = 0;
    uint32_t index = (uint32_t)(span - run->batch.spans);
    for (uint32_t i = 0; i < index; i++) {
        const sp_span *other = &run->batch.spans[i];
        if (other->rows == 1 && parts_of(op, run, other) > 1)
            floats += blocks_of(other) * op->heads * partial_floats(op);
    }
    const size_t counters = (run->batch.span_count * op->kv_heads + 15) / 16 * 16;
    return (partials){.at = sp_rows(run, op->partial_at) + counters + floats,
                      .floats = partial_floats(op),
                      .arrived = (atomic_uint *)(void *)(run->arena + op->partial_at) + index * op->kv_heads};
}

static void merge_parts(const sp_attention *op, const sp_run *run, const sp_span *span, uint32_t head,
                        const partials *p, const sp_worker *worker) {
    const uint32_t group = sp_attend_group(op), blocks = blocks_of(span);
    const size_t vd = sp_attend_value_row(op);
    for (uint32_t r = 0; r < group; r++) {
        float *first = p->at + ((size_t)head * blocks * group + r) * p->floats;
        for (uint32_t b = 1; b < blocks; b++) {
            const float *block = first + (size_t)b * group * p->floats;
            const sp_merge_args merge = {.o = first,
                                         .m = first + vd,
                                         .l = first + vd + 1,
                                         .ob = block,
                                         .mb = block + vd,
                                         .lb = block + vd + 1,
                                         .ldo = vd,
                                         .ldb = vd,
                                         .rows = 1,
                                         .d = op->head_dim};
            SP_CALL(run, worker, SP_SLOT_MERGE, sp_merge_fn)(&merge);
        }
    }
    const float *first = p->at + (size_t)head * blocks * group * p->floats;
    sp_attend_store(op, run, worker, span->row0, head, first, p->floats, first + vd + 1, p->floats,
                    sp_attend_cut(op, worker).q);
    if (sp_attend_whole_rows(op, run, span->row0)) sp_act_arrive(run, worker, &op->out, span->row0, 1, op->kv_heads);
}

static void decode_part(const sp_attention *op, sp_run *run, const sp_span *span, uint32_t head, uint32_t part,
                        uint32_t parts, const sp_worker *worker) {
    const uint32_t group = sp_attend_group(op), blocks = blocks_of(span), position = (uint32_t)span->start;
    const sp_range mine = sp_tile_part(blocks, parts, part);
    const size_t vd = sp_attend_value_row(op);
    const float *q = sp_rows(run, op->q_at) + ((size_t)span->row0 * op->heads + head * group) * op->head_dim;
    const partials p = partials_of(op, run, span);
    const sp_attend w = sp_attend_cut(op, worker);
    for (uint32_t b = mine.first; b < mine.last; b++) {
        const uint32_t keys = sp_least(SP_BLOCK, position + 1 - b * SP_BLOCK);
        memset(w.visible, (int)keys, group);
        const sp_attend_block kv = sp_attend_load(op, run, worker, span->pages[b], head, keys, group, &w);
        sp_attend_rows(op, run, worker, &w, &kv, 0, group, keys, q);
        for (uint32_t r = 0; r < group; r++) {
            float *out = p.at + (((size_t)head * blocks + b) * group + r) * p.floats;
            memcpy(out, w.ob + r * vd, vd * sizeof *out);
            out[vd] = w.mb[r];
            out[vd + 1] = w.lb[r];
        }
    }
    if (atomic_fetch_add_explicit(&p.arrived[head], 1, memory_order_acq_rel) + 1 == parts)
        merge_parts(op, run, span, head, &p, worker);
}

// ---- tiles

static uint32_t span_tiles(const sp_attention *op, const sp_run *run, const sp_span *span) {
    if (span->rows == 1) return op->kv_heads * parts_of(op, run, span);
    return op->kv_heads * sp_tile_count(span->rows, sp_attend_tokens(sp_attend_group(op)));
}

uint32_t sp_attention_tiles(const sp_attention *op, sp_run *run) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < run->batch.span_count; i++) count += span_tiles(op, run, &run->batch.spans[i]);
    memset(run->arena + op->partial_at, 0, (size_t)run->batch.span_count * op->kv_heads * sizeof(atomic_uint));
    if (op->out.arrived_at != SP_ABSENT) sp_act_arrive_reset(run, &op->out);
    return count;
}

void sp_attention_tile(const sp_attention *op, sp_run *run, uint32_t tile, const sp_worker *worker) {
    const sp_span *span = run->batch.spans;
    for (uint32_t count; tile >= (count = span_tiles(op, run, span)); span++) tile -= count;
    const uint32_t head = tile % op->kv_heads, index = tile / op->kv_heads;
    if (span->rows == 1 && parts_of(op, run, span) > 1)
        decode_part(op, run, span, head, index, parts_of(op, run, span), worker);
    else prefill_tile(op, run, span, head, index * sp_attend_tokens(sp_attend_group(op)), worker);
}

size_t sp_attention_partial_bytes(uint32_t heads, uint32_t kv_heads, uint32_t head_dim, uint32_t workers,
                                  uint32_t max_spans, uint32_t max_blocks) {
    const sp_attention op = {.heads = heads, .kv_heads = kv_heads, .head_dim = head_dim};
    const uint32_t split = sp_tile_split_most(workers) / kv_heads;  // spans, each of kv_heads pieces
    const size_t counters = ((size_t)max_spans * kv_heads + 15) / 16 * 16;
    return (counters + (size_t)split * max_blocks * heads * partial_floats(&op)) * sizeof(float);
}
