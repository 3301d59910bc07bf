// SPDX-License-Identifier: Apache-2.0
#include "exec/program.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

// One word, so that a cancel that comes late cannot reach into the next run.
enum progress { IDLE, RUNNING, CANCELLED };

struct sp_program {
    sp_pool *pool;
    sp_kernel_set kernels[SP_KIND_COUNT];
    sp_run run;
    sp_region arena;
    sp_step *steps;
    size_t count, capacity;
    const sp_step *current;  // the step whose tiles the workers compute
    atomic_int state;        // progress
    uint64_t ns[SP_OP_COUNT];
};

const char *sp_op_name(sp_op_kind kind) {
    static const char *const names[SP_OP_COUNT] = {"embed",   "norm",    "qkv",    "attention",
                                                   "project", "gate_up", "logits", "observe"};
    return names[kind];
}

sp_status sp_program_create(sp_program **out, sp_pool *pool, sp_kv *kv, const sp_kernel_set kernels[SP_KIND_COUNT],
                            size_t arena_bytes) {
    sp_program *program = calloc(1, sizeof *program);
    if (!program) return SP_ERR_MEMORY;
    program->pool = pool;
    memcpy(program->kernels, kernels, sizeof program->kernels);
    if (sp_region_reserve(&program->arena, arena_bytes) != SP_OK) {
        free(program);
        return SP_ERR_MEMORY;
    }
    program->run = (sp_run){.kernels = program->kernels,
                            .kv = kv,
                            .arena = program->arena.base,
                            .workers = (uint32_t)sp_pool_workers(pool)};
    *out = program;
    return SP_OK;
}

void sp_program_destroy(sp_program *program) {
    if (!program) return;
    sp_region_release(&program->arena);
    free(program->steps);
    free(program);
}

sp_status sp_program_add(sp_program *program, const sp_step *step) {
    if (program->count == program->capacity) {
        const size_t capacity = program->capacity ? 2 * program->capacity : 64;
        sp_step *steps = realloc(program->steps, capacity * sizeof *steps);
        if (!steps) return SP_ERR_MEMORY;
        program->steps = steps;
        program->capacity = capacity;
    }
    program->steps[program->count++] = *step;
    return SP_OK;
}

static uint32_t tiles_of(const sp_step *step, sp_run *run) {
    switch (step->kind) {
        case SP_OP_EMBED: return sp_embed_tiles(&step->u.embed, run);
        case SP_OP_NORM: return sp_norm_tiles(&step->u.norm, run);
        case SP_OP_QKV: return sp_qkv_tiles(&step->u.qkv, run);
        case SP_OP_ATTENTION: return sp_attention_tiles(&step->u.attention, run);
        case SP_OP_PROJECT: return sp_project_tiles(&step->u.project, run);
        case SP_OP_GATE_UP: return sp_gate_up_tiles(&step->u.gate_up, run);
        case SP_OP_LOGITS: return sp_logits_tiles(&step->u.logits, run);
        case SP_OP_OBSERVE: return sp_observe_tiles(&step->u.observe, run);
        case SP_OP_COUNT: break;
    }
    return 0;
}

static void one_tile(const sp_step *step, sp_run *run, uint32_t tile, const sp_worker *worker) {
    switch (step->kind) {
        case SP_OP_EMBED: sp_embed_tile(&step->u.embed, run, tile, worker); break;
        case SP_OP_NORM: sp_norm_tile(&step->u.norm, run, tile, worker); break;
        case SP_OP_QKV: sp_qkv_tile(&step->u.qkv, run, tile, worker); break;
        case SP_OP_ATTENTION: sp_attention_tile(&step->u.attention, run, tile, worker); break;
        case SP_OP_PROJECT: sp_project_tile(&step->u.project, run, tile, worker); break;
        case SP_OP_GATE_UP: sp_gate_up_tile(&step->u.gate_up, run, tile, worker); break;
        case SP_OP_LOGITS: sp_logits_tile(&step->u.logits, run, tile, worker); break;
        case SP_OP_OBSERVE: sp_observe_tile(&step->u.observe, run, tile, worker); break;
        case SP_OP_COUNT: break;
    }
}

static void run_tiles(void *ctx, uint32_t begin, uint32_t end, const sp_worker *worker) {
    sp_program *program = ctx;
    for (uint32_t tile = begin; tile < end; tile++) {
        if (atomic_load_explicit(&program->state, memory_order_relaxed) == CANCELLED) return;
        one_tile(program->current, &program->run, tile, worker);
    }
}

// Rows of spans longer than one token.
static uint32_t prompt_rows(const sp_batch *batch) {
    uint32_t rows = 0;
    for (uint32_t i = 0; i < batch->span_count; i++) rows += batch->spans[i].rows > 1 ? batch->spans[i].rows : 0;
    return rows;
}

static uint32_t kinds_for(const sp_step *step, uint32_t prompt) {
    const bool matrix = step->matrix_rows > 0 && prompt >= step->matrix_rows;
    return 1u << SP_KIND_CORE | (uint32_t)matrix << SP_KIND_SME;
}

// The kinds of workers that some step needs.
static uint32_t kinds_of(const sp_program *program, uint32_t prompt) {
    uint32_t kinds = 0;
    for (size_t i = 0; i < program->count; i++) kinds |= kinds_for(&program->steps[i], prompt);
    return kinds;
}

sp_status sp_program_run(sp_program *program, const sp_batch *batch) {
    const uint32_t prompt = prompt_rows(batch);
    program->run.batch = *batch;
    atomic_store(&program->state, RUNNING);
    sp_pool_begin(program->pool, kinds_of(program, prompt));
    for (size_t i = 0; i < program->count && atomic_load(&program->state) == RUNNING; i++) {
        const sp_step *step = &program->steps[i];
        const uint64_t start = sp_clock_ns();
        program->current = step;
        const sp_queue_spec spec = {.tiles = tiles_of(step, &program->run), .kinds = kinds_for(step, prompt)};
        sp_pool_run(program->pool, &spec, run_tiles, program);
        program->ns[step->kind] += sp_clock_ns() - start;
    }
    sp_pool_end(program->pool);
    return atomic_exchange(&program->state, IDLE) == CANCELLED ? SP_ERR_CANCELLED : SP_OK;
}

void sp_program_cancel(sp_program *program) {
    int running = RUNNING;
    atomic_compare_exchange_strong(&program->state, &running, CANCELLED);
}

void sp_program_times(const sp_program *program, uint64_t ns[SP_OP_COUNT]) {
    memcpy(ns, program->ns, sizeof program->ns);
}
