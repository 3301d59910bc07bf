// SPDX-License-Identifier: Apache-2.0
// A lowered execution plan: a flat list of operators over one arena, run to the end in one call.
//
// A run hands each step's tiles to the pool and joins before the next step. It allocates nothing. Cancelling takes
// effect between two tiles; what a cancelled run wrote (arena, KV pages beyond the sequence's length) has no meaning.
#pragma once

#include "op/op.h"
#include "thread/pool.h"

typedef enum sp_op_kind {
    SP_OP_EMBED,
    SP_OP_NORM,
    SP_OP_QKV,
    SP_OP_ATTENTION,
    SP_OP_PROJECT,
    SP_OP_GATE_UP,
    SP_OP_LOGITS,
    SP_OP_OBSERVE,
    SP_OP_COUNT
} sp_op_kind;

const char *sp_op_name(sp_op_kind kind);

typedef struct sp_step {
    sp_op_kind kind;
    union {
        sp_embed embed;
        sp_norm norm;
        sp_qkv qkv;
        sp_attention attention;
        sp_project project;
        sp_gate_up gate_up;
        sp_logits logits;
        sp_observe observe;
    } u;
    uint32_t matrix_rows;  // rows of prompts from which matrix units' workers take part; 0: they never do
} sp_step;

typedef struct sp_program sp_program;

// Makes an empty program. `kv` and `pool` are borrowed and must outlive it; the arena is `arena_bytes` of its own.
// `kernels` are those of core workers and of matrix units' workers.
sp_status sp_program_create(sp_program **out, sp_pool *pool, sp_kv *kv, const sp_kernel_set kernels[SP_KIND_COUNT],
                            size_t arena_bytes);
void sp_program_destroy(sp_program *program);

// Appends a step.
sp_status sp_program_add(sp_program *program, const sp_step *step);

// Runs all steps for a batch. Ids, positions and pages must be in range: the caller has checked them.
sp_status sp_program_run(sp_program *program, const sp_batch *batch);

// Makes the current run return SP_ERR_CANCELLED soon; from any thread. Without a run, the next one is not affected.
void sp_program_cancel(sp_program *program);

// Nanoseconds spent per kind of operator since the program was made.
void sp_program_times(const sp_program *program, uint64_t ns[SP_OP_COUNT]);
