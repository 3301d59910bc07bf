// SPDX-License-Identifier: Apache-2.0
// Operators: loops around micro-kernels. Each operator says how many tiles a batch gives it and computes any one of
// them; which worker computes which tile never changes a bit.
//
// Fusion: an operator's tile takes its operand as the producer left it and leaves its result as the consumer wants it.
//   embed      tokens -> x, and the rope table of the batch's positions
//   norm       x -> h (normalised, quantised and packed)
//   qkv        h -> q (rotated and scaled), K and V straight into their pages
//   attention  q, pages -> h2 (quantised and packed)
//   project    h -> x += W h
//   gate_up    h -> h3 (activation, quantised and packed)
//   logits     h -> rows of logits
//   observe    rows -> the largest |x| of each column: calibration alone has such steps
//
// Classes: of a batch's rows the first `rowwise` are computed in the rowwise class wherever a linear layer has that
// form, the others in the grouped one (kernel/families.h has both products). No panel of tokens and no span
// holds both. A whole row is needed to quantise with one scale: where an operator's tiles make parts of rows, they
// leave float32 rows, and whoever adds the last part of a panel quantises it.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "kernel/kernel.h"
#include "kv/kv.h"
#include "layout/panel.h"
#include "thread/queue.h"

#define SP_TOKENS 16       // tokens of an activation panel
#define SP_TILE_PANELS 32  // weight panels that one tile may combine: heads of up to 512, odd ones up to 256
#define SP_K_BLOCK 1024    // k of the float32 strips that float weights are expanded to

// A weight matrix in packed panels. Its rowwise form is made from them, panel by panel, with one scale for each row.
typedef struct sp_linear {
    const uint8_t *panels;
    sp_panel_layout layout;
    uint32_t rows;
    const float *inv,
        *scale;  // [rows, padded to 16]: 127 / amax and amax / 127, amax: a row's largest |w * s|; or NULL
} sp_linear;

// How the rowwise class treats the columns of a linear layer's input: weights are multiplied by s, activations by
// u = 1 / s; outlier columns have s = u = 0 and are added in float32. All its readers share it.
typedef struct sp_smooth {
    const float *s, *u;       // [k]; NULL: this input has no rowwise form
    const int32_t *outliers;  // ascending
    uint32_t outlier_count;   // up to SP_OUTLIERS
} sp_smooth;

#define SP_OUTLIERS 64

// An activation matrix [tokens][k] in the arena: float32 rows, int8 panels, or both; SIZE_MAX marks an absent part.
// Panels of the rowwise rows come first and are 16 wide whatever they hold; those of the grouped rows follow.
typedef struct sp_act {
    size_t k;
    size_t rows_at;                            // float32 [tokens][k]
    size_t q_at;                               // panels of 16 tokens: [k/4][width][4] int8
    size_t d_at, neg_at, sum_at;               // grouped rows: [k/32][width] of each, panel by panel
    size_t scale_at, row_neg_at, outliers_at;  // rowwise rows: [tokens]; [tokens]; float32 [tokens][outlier_count]
    size_t arrived_at;                         // a counter for each panel, where tiles make parts of rows
    sp_smooth smooth;
} sp_act;

#define SP_ABSENT SIZE_MAX

// Consecutive tokens of one sequence within a batch.
typedef struct sp_span {
    uint32_t row0, rows;   // rows of the batch
    int32_t start;         // position of the first one
    const int32_t *pages;  // page i holds positions [64 i, 64 i + 64)
} sp_span;

typedef struct sp_batch {
    uint32_t tokens;
    const int32_t *ids, *positions;
    const sp_span *spans;
    uint32_t span_count;
    const int32_t *logit_rows;  // rows whose logits are wanted
    uint32_t logit_count;
    float *logits;     // [logit_count][vocabulary]
    uint32_t rowwise;  // leading rows that are computed in the rowwise class; a span begins behind them
} sp_batch;

// What every operator sees during one run.
typedef struct sp_run {
    sp_batch batch;
    const sp_kernel_set *kernels;  // [SP_KIND_COUNT]: a matrix unit's worker has kernels of its own
    sp_kv *kv;
    uint8_t *arena;
    uint32_t workers;
} sp_run;

typedef struct sp_embed {
    sp_linear table;
    size_t x_at, cos_at, sin_at;  // x [tokens][k]; cos, sin [tokens][half]
    const float *inv_freq;
    uint32_t half;
} sp_embed;

typedef struct sp_norm {
    const float *weight;
    float eps;
    size_t x_at;
    sp_act out;
    bool gather;  // take the rows in batch.logit_rows instead of all
} sp_norm;

typedef struct sp_qkv {
    sp_linear weights[3];
    sp_act in;
    size_t q_at;  // [tokens][heads * head_dim], rotated, times q_scale
    size_t cos_at, sin_at;
    uint32_t layer, head_dim;
    float q_scale;
} sp_qkv;

typedef struct sp_attention {
    size_t q_at;
    sp_act out;
    uint32_t layer, heads, kv_heads, head_dim;
    size_t partial_at;  // arrival counters and partial results of split spans: sp_attention_partial_bytes
} sp_attention;

typedef struct sp_project {
    sp_linear weight;
    sp_act in;
    size_t x_at;
} sp_project;

typedef struct sp_gate_up {
    sp_linear gate, up;
    sp_act in, out;
} sp_gate_up;

typedef struct sp_logits {
    sp_linear weight;
    sp_act in;
} sp_logits;

typedef struct sp_observe {
    sp_act in;     // has rows
    float *peaks;  // [k]: the largest |x| so far, at least +0
} sp_observe;

// Tiles of an operator for the batch of `run`, and one of them. `prepare` may also reset shared counters.
#define SP_OPERATOR(name)                                         \
    uint32_t sp_##name##_tiles(const sp_##name *op, sp_run *run); \
    void sp_##name##_tile(const sp_##name *op, sp_run *run, uint32_t tile, const sp_worker *worker);
SP_OPERATOR(embed)
SP_OPERATOR(norm)
SP_OPERATOR(qkv)
SP_OPERATOR(attention)
SP_OPERATOR(project)
SP_OPERATOR(gate_up)
SP_OPERATOR(logits)
SP_OPERATOR(observe)
#undef SP_OPERATOR

// Bytes of scratch that a worker needs for the given model and batch limits.
size_t sp_op_scratch_bytes(uint32_t max_tokens, uint32_t heads, uint32_t kv_heads, uint32_t head_dim, uint32_t d_model);

// Arena bytes for the partial results of split attention, given the batch's limits.
size_t sp_attention_partial_bytes(uint32_t heads, uint32_t kv_heads, uint32_t head_dim, uint32_t workers,
                                  uint32_t max_spans, uint32_t max_blocks);

// The best kernels of `tiers` for each kind of worker. A unit that cores share has workers of its own, which alone use
// it; where each core has a unit for itself, core workers use it wherever many rows come at once.
void sp_run_kernels(sp_kernel_set kernels[SP_KIND_COUNT], uint32_t tiers, bool private_units);

// ---- shared by the operators

// The kernel of a slot for a worker's kind.
static inline const sp_kernel *sp_kernel_of(const sp_run *run, const sp_worker *worker, sp_slot slot) {
    return run->kernels[worker->kind].k[slot];
}

// Its function, counted as executed: worker->counts is [SP_KIND_COUNT][SP_SLOT_COUNT], each worker using its kind's.
#define SP_CALL(run, worker, slot, type) ((type)sp_kernel_use((run), (worker), (slot)))
enum { SP_COUNTERS = SP_KIND_COUNT * SP_SLOT_COUNT };

static inline void (*sp_kernel_use(const sp_run *run, const sp_worker *worker, sp_slot slot))(void) {
    worker->counts[worker->kind * SP_SLOT_COUNT + slot]++;
    return sp_kernel_of(run, worker, slot)->fn;
}

// The worker for products too small to enter a matrix unit for: any worker is a core too.
static inline sp_worker sp_as_core(const sp_worker *worker) {
    sp_worker core = *worker;
    core.kind = SP_KIND_CORE;
    return core;
}

static inline float *sp_rows(const sp_run *run, size_t at) { return (float *)(void *)(run->arena + at); }

// The rows of an activation matrix: all of them, and the leading ones of the rowwise class.
typedef struct sp_extent {
    uint32_t tokens, rowwise;
} sp_extent;

static inline sp_extent sp_all_rows(const sp_run *run) { return (sp_extent){run->batch.tokens, run->batch.rowwise}; }
static inline sp_extent sp_logit_rows(const sp_run *run) { return (sp_extent){run->batch.logit_count, 0}; }

// Their panels of tokens, none of which holds both classes: how many, and which one holds a row.
uint32_t sp_panels_of(sp_extent rows);
uint32_t sp_panel_of(sp_extent rows, uint32_t row);

// Panel p of an activation matrix: its rows and where its planes are.
typedef struct sp_act_panel {
    uint32_t first, width;
    bool rowwise;    // its rows are of that class, and the matrix has that form
    int8_t *q;
    float *d, *sum;  // rowwise: d is [width], there is no sum
    int32_t *neg;
} sp_act_panel;
sp_act_panel sp_act_panel_at(const sp_run *run, const sp_act *act, sp_extent rows, uint32_t p);

// Quantises columns [column, column + n) of token t of a grouped panel; column and n are multiples of 32.
void sp_act_quantise(const sp_run *run, const sp_worker *worker, const sp_act_panel *panel, uint32_t t, size_t column,
                     const float *x, size_t n);

// Quantises a whole row of token t of a panel of either class.
void sp_act_quantise_row(const sp_run *run, const sp_worker *worker, const sp_act *act, const sp_act_panel *panel,
                         uint32_t t, const float *x);

// For tiles that make parts of rows: forget what has arrived; one part of rows [first, first + n) has arrived among
// the float32 rows. Whoever brings the last of the `whole` parts of a panel's rows makes its int8 form.
void sp_act_arrive_reset(const sp_run *run, const sp_act *act);
void sp_act_arrive(const sp_run *run, const sp_worker *worker, const sp_act *act, uint32_t first, uint32_t n,
                   uint32_t whole);
