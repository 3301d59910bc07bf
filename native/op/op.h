// SPDX-License-Identifier: Apache-2.0
// Operators: loops around micro-kernels. Each operator says how many tiles a batch gives it and computes any one of
// them; which worker computes which tile never changes a bit.
//
// Fusion: an operator's tile takes its operand as the producer left it and leaves its result as the consumer wants it.
//   embed      tokens -> x, and the rope table of the batch's positions
//   norm       x -> h (normalised, quantised and packed)
//   qkv        h -> q (rotated and scaled), K and V straight into their pages
//   attention  q, pages -> h2 (quantised and packed per head)
//   pack       rows -> panels, only where heads and quantisation groups do not line up
//   project    h -> x += W h
//   gate_up    h -> h3 (activation, quantised and packed)
//   logits     h -> rows of logits
//   observe    rows -> the largest |x| of each column: calibration alone has such steps
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

// A weight matrix in packed panels.
typedef struct sp_linear {
    const uint8_t *panels;
    sp_panel_layout layout;
    uint32_t rows;
} sp_linear;

// An activation matrix [tokens][k] in the arena: float32 rows, int8 panels, or both; SIZE_MAX marks an absent part.
typedef struct sp_act {
    size_t k;
    size_t rows_at;                     // float32 [tokens][k]
    size_t q_at, d_at, neg_at, sum_at;  // panels of 16 tokens: [k/4][width][4] int8; [k/32][width] of each other
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
    float *logits;  // [logit_count][vocabulary]
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

typedef struct sp_pack {
    sp_act act;  // has rows and panels
} sp_pack;

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
SP_OPERATOR(pack)
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

static inline float *sp_rows(const sp_run *run, size_t at) { return (float *)(void *)(run->arena + at); }

// Panel p of an activation matrix of `tokens` tokens: how many tokens it holds and where its planes are.
typedef struct sp_act_panel {
    uint32_t width;
    int8_t *q;
    float *d, *sum;
    int32_t *neg;
} sp_act_panel;
sp_act_panel sp_act_panel_at(const sp_run *run, const sp_act *act, uint32_t tokens, uint32_t p);

// Quantises columns [column, column + n) of token t of a panel from x; column and n are multiples of 32.
void sp_act_quantise(const sp_run *run, const sp_worker *worker, const sp_act_panel *panel, uint32_t t, size_t column,
                     const float *x, size_t n);
