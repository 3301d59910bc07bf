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
#include <math.h>
#include <string.h>

#include "op/matmul.h"

enum { TILE_ROWS = 96, BLOCK = SP_KV_PAGE };

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t blocks_of(const sp_span *span) { return ((uint32_t)span->start + span->rows + BLOCK - 1) / BLOCK; }
static uint32_t group_of(const sp_attention *op) { return op->heads / op->kv_heads; }
static size_t value_row(const sp_attention *op) { return ((size_t)op->head_dim + 15) / 16 * 16; }

// ---- one tile's working memory, cut from the worker's scratch

typedef struct scratch {
    float *q, *s, *o, *ob, *k, *v;  // [rows][head_dim], [rows][64], [rows][vd], [rows][vd], strips, [64][vd]
    float *m, *l, *mb, *lb;         // [rows]
    uint8_t *visible;               // [rows]
} scratch;

static size_t scratch_floats(uint32_t rows, size_t head_dim, size_t vd) {
    return rows * (head_dim + BLOCK + 2 * vd + 4) + BLOCK * (head_dim + vd) + rows / sizeof(float) + 64;
}

static uint32_t tile_tokens(uint32_t group) { return group < TILE_ROWS ? TILE_ROWS / group : 1; }

static scratch cut(const sp_attention *op, const sp_worker *worker) {
    const uint32_t rows = tile_tokens(group_of(op)) * group_of(op);
    const size_t vd = value_row(op);
    float *p = worker->scratch;
    scratch w;
    w.k = p, p += BLOCK * op->head_dim;
    w.v = p, p += BLOCK * vd;
    w.s = p, p += rows * BLOCK;
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
    const uint32_t group = heads / kv_heads, rows = tile_tokens(group) * group;
    const size_t attention = scratch_floats(rows, head_dim, ((size_t)head_dim + 15) / 16 * 16) * sizeof(float);
    const size_t matmul = sp_matmul_scratch_bytes(max_tokens), norm = d_model * sizeof(float);
    const size_t most = attention > matmul ? attention : matmul;
    return most > norm ? most : norm;
}

// ---- one block for the rows of a tile

// Keys and values of a block, and the kernel that multiplies with them as they are.
typedef struct block {
    const void *k, *v;
    sp_slot gemm;
} block;

// The page itself, or, where many rows share the work, its float16 widened once into scratch.
static block load_block(const sp_attention *op, const sp_run *run, const sp_worker *worker, int32_t page, uint32_t head,
                        uint32_t positions, uint32_t rows, const scratch *w) {
    const void *keys = sp_kv_keys(run->kv, page, op->layer, head);
    const void *values = sp_kv_values(run->kv, page, op->layer, head);
    if (run->kv->config.f32) return (block){keys, values, SP_SLOT_GEMM_F32};
    if (rows <= run->kernels->k[SP_SLOT_GEMM_F16]->mr) return (block){keys, values, SP_SLOT_GEMM_F16};
    const size_t panels = (positions + 15) / 16;
    SP_CALL(run, worker, SP_SLOT_WIDEN_F16, sp_widen_fn)(w->k, keys, panels * 16 * op->head_dim);
    SP_CALL(run, worker, SP_SLOT_WIDEN_F16, sp_widen_fn)(w->v, values, positions * value_row(op));
    return (block){w->k, w->v, SP_SLOT_GEMM_F32};
}

// (ob, mb, lb) of rows [first, rows) for a block of which `keys` are seen by the last row.
static void block_rows(const sp_attention *op, const sp_run *run, const sp_worker *worker, const scratch *w,
                       const block *kv, uint32_t first, uint32_t rows, uint32_t keys, const float *q) {
    const size_t vd = value_row(op);
    const sp_gemm_f_args scores = {.a = q + first * op->head_dim,
                                   .lda = op->head_dim,
                                   .b = kv->k,
                                   .strip = (size_t)op->head_dim * 16,
                                   .step = 16,
                                   .y = w->s + first * BLOCK,
                                   .ldy = BLOCK,
                                   .m = rows - first,
                                   .k = op->head_dim};
    // Keys that come from memory are read one panel after the other, which is one stream; those in cache in wide tiles.
    const uint32_t step = kv->gemm == SP_SLOT_GEMM_F16 ? 16 : BLOCK;
    for (uint32_t at = 0; at < keys; at += step) {
        sp_gemm_f_args part = scores;
        part.n = (least(step, keys - at) + 15) / 16 * 16;
        part.b = (const uint8_t *)kv->k + at * op->head_dim * run->kv->element;
        part.y = scores.y + at;
        sp_gemm_f(run, worker, kv->gemm, part);
    }
    const sp_softmax_args softmax = {.s = w->s + first * BLOCK,
                                     .ld = BLOCK,
                                     .rows = rows - first,
                                     .visible = w->visible + first,
                                     .max = w->mb + first,
                                     .sum = w->lb + first};
    SP_CALL(run, worker, SP_SLOT_SOFTMAX, sp_softmax_fn)(&softmax);
    const sp_gemm_f_args sums = {.a = w->s + first * BLOCK,
                                 .lda = BLOCK,
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

// o / l of a token's heads in one group, head by head, into the consumer's layout. `y` is room for the group.
static void store_group(const sp_attention *op, const sp_run *run, const sp_worker *worker, uint32_t row, uint32_t head,
                        const float *o, size_t ldo, const float *l, size_t ldl, float *y) {
    const uint32_t group = group_of(op), d = op->head_dim;
    const size_t column = (size_t)head * group * d;
    const bool rows = op->out.rows_at != SP_ABSENT, packed = op->out.q_at != SP_ABSENT;
    if (rows) y = sp_rows(run, op->out.rows_at) + row * op->out.k + column;
    for (uint32_t r = 0; r < group; r++)
        SP_CALL(run, worker, SP_SLOT_FINISH, sp_finish_fn)(y + r * d, o + r * ldo, l[r * ldl], d);
    // Heads that do not fill quantisation groups are packed by a step of their own.
    if (!packed || d % SP_GROUP) return;
    const sp_act_panel panel = sp_act_panel_at(run, &op->out, run->batch.tokens, row / SP_TOKENS);
    sp_act_quantise(run, worker, &panel, row % SP_TOKENS, column, y, (size_t)group * d);
}

// ---- spans of several tokens

static void prefill_tile(const sp_attention *op, sp_run *run, const sp_span *span, uint32_t head, uint32_t token,
                         const sp_worker *worker) {
    const uint32_t group = group_of(op), tokens = least(tile_tokens(group), span->rows - token), rows = tokens * group;
    const size_t vd = value_row(op), row_floats = (size_t)op->heads * op->head_dim;
    const uint32_t start = (uint32_t)span->start + token;
    const scratch w = cut(op, worker);
    for (uint32_t t = 0; t < tokens; t++) {
        const float *q = sp_rows(run, op->q_at) + (span->row0 + token + t) * row_floats + head * group * op->head_dim;
        memcpy(w.q + (size_t)t * group * op->head_dim, q, (size_t)group * op->head_dim * sizeof *q);
    }
    for (uint32_t b = 0; b * BLOCK < start + tokens; b++) {
        const uint32_t at = b * BLOCK, first_token = at > start ? at - start : 0, first = first_token * group;
        const uint32_t keys = least(BLOCK, start + tokens - at);
        for (uint32_t r = first; r < rows; r++) w.visible[r] = (uint8_t)least(BLOCK, start + r / group + 1 - at);
        const block kv = load_block(op, run, worker, span->pages[b], head, keys, rows - first, &w);
        block_rows(op, run, worker, &w, &kv, first, rows, keys, w.q);
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
        store_group(op, run, worker, span->row0 + token + t, head, w.o + r * vd, vd, w.l + r, 1, w.q);
    }
}

// ---- spans of one token, split into parts

// The partial results of one split span: [kv_heads][blocks][group] of o [vd], m, l.
typedef struct partials {
    float *at;
    size_t floats;         // of one row of one block
    atomic_uint *arrived;  // [kv_heads]
} partials;

static size_t partial_floats(const sp_attention *op) { return value_row(op) + 16; }

// Parts that a one-token span's blocks are split into: enough to keep all workers busy.
static uint32_t parts_of(const sp_attention *op, const sp_run *run, const sp_span *span) {
    const uint32_t wanted = 4 * run->workers, have = op->kv_heads * run->batch.span_count;
    if (run->workers == 1 || have >= wanted) return 1;
    return least((wanted + have - 1) / have, blocks_of(span));
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
    const uint32_t group = group_of(op), blocks = blocks_of(span);
    const size_t vd = value_row(op);
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
    store_group(op, run, worker, span->row0, head, first, p->floats, first + vd + 1, p->floats, cut(op, worker).q);
}

static void decode_part(const sp_attention *op, sp_run *run, const sp_span *span, uint32_t head, uint32_t part,
                        uint32_t parts, const sp_worker *worker) {
    const uint32_t group = group_of(op), blocks = blocks_of(span), position = (uint32_t)span->start;
    const uint32_t first = part * blocks / parts, last = (part + 1) * blocks / parts;
    const size_t vd = value_row(op);
    const float *q = sp_rows(run, op->q_at) + ((size_t)span->row0 * op->heads + head * group) * op->head_dim;
    const partials p = partials_of(op, run, span);
    const scratch w = cut(op, worker);
    for (uint32_t b = first; b < last; b++) {
        const uint32_t keys = least(BLOCK, position + 1 - b * BLOCK);
        memset(w.visible, (int)keys, group);
        const block kv = load_block(op, run, worker, span->pages[b], head, keys, group, &w);
        block_rows(op, run, worker, &w, &kv, 0, group, keys, q);
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
    const uint32_t tokens = tile_tokens(group_of(op));
    return op->kv_heads * ((span->rows + tokens - 1) / tokens);
}

uint32_t sp_attention_tiles(const sp_attention *op, sp_run *run) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < run->batch.span_count; i++) count += span_tiles(op, run, &run->batch.spans[i]);
    memset(run->arena + op->partial_at, 0, (size_t)run->batch.span_count * op->kv_heads * sizeof(atomic_uint));
    return count;
}

void sp_attention_tile(const sp_attention *op, sp_run *run, uint32_t tile, const sp_worker *worker) {
    const sp_span *span = run->batch.spans;
    for (uint32_t count; tile >= (count = span_tiles(op, run, span)); span++) tile -= count;
    const uint32_t head = tile % op->kv_heads, index = tile / op->kv_heads;
    if (span->rows == 1 && parts_of(op, run, span) > 1)
        decode_part(op, run, span, head, index, parts_of(op, run, span), worker);
    else prefill_tile(op, run, span, head, index * tile_tokens(group_of(op)), worker);
}

size_t sp_attention_partial_bytes(uint32_t heads, uint32_t kv_heads, uint32_t head_dim, uint32_t workers,
                                  uint32_t max_spans, uint32_t max_blocks) {
    const sp_attention op = {.heads = heads, .kv_heads = kv_heads, .head_dim = head_dim};
    // Only as many spans as leave workers without a head of their own are split; see parts_of.
    const uint32_t split = workers > 1 ? (4 * workers - 1) / kv_heads : 0;
    const size_t counters = ((size_t)max_spans * kv_heads + 15) / 16 * 16;
    return (counters + (size_t)split * max_blocks * heads * partial_floats(&op)) * sizeof(float);
}
