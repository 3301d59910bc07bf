// SPDX-License-Identifier: Apache-2.0
// Programs: a whole small model, in either class, run by several workers gives one worker's bits, and cancelling ends a
// run early and leaves no trace. Under ThreadSanitizer this is the test that the operators share memory properly.
#include "exec/program.h"

#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/variants.h"
#include "op/rig.h"
#include "test.h"

enum {
    D = 64,
    HEADS = 4,
    KV_HEADS = 2,
    HEAD = 16,
    FF = 96,
    VOCAB = 41,
    BATCH = 128,
    PAGES = 8,
    CONTEXT_PAGES = 3,
    STEPS = 8,
    OUTLIERS = 2,
    MATRIX_ROWS = 30,  // some steps of a talk have as many rows of prompts
};

// One layer of random weights, and a program over them.
typedef struct model {
    sp_rig_matrix embedding, q, k, v, o, gate, up, down;
    float norm[D], inv_freq[HEAD / 2], peaks[FF];
    float s[FF], u[FF];  // smoothing of every input: those of fewer columns read its beginning
    int32_t outliers[OUTLIERS];
    sp_smooth smooth;  // all zero where the model has no rowwise form
    sp_pool *pool;
    sp_kv *kv;
    sp_program *program;
    size_t arena;
} model;

static size_t take(model *m, size_t bytes) {
    const size_t at = m->arena;
    m->arena += (bytes + SP_LINE - 1) / SP_LINE * SP_LINE;
    return at;
}

static sp_act act(model *m, size_t k) {
    const size_t plane = BATCH * (k / SP_GROUP) * sizeof(float);
    sp_act made = {.k = k, .rows_at = take(m, BATCH * k * sizeof(float))};
    made.q_at = take(m, (BATCH + SP_TOKENS) * k);
    made.d_at = take(m, plane), made.neg_at = take(m, plane), made.sum_at = take(m, plane);
    made.scale_at = take(m, BATCH * sizeof(float)), made.row_neg_at = take(m, BATCH * sizeof(int32_t));
    made.outliers_at = take(m, BATCH * OUTLIERS * sizeof(float));
    made.smooth = m->smooth;
    made.arrived_at = take(m, (BATCH / SP_TOKENS + 1) * sizeof(atomic_uint));
    return made;
}

static void make_weights(model *m, sp_format format, bool rowwise) {
    m->embedding = sp_rig_matrix_make(format, VOCAB, D, 1);
    m->q = sp_rig_matrix_make(format, HEADS * HEAD, D, 2);
    m->k = sp_rig_matrix_make(format, KV_HEADS * HEAD, D, 3);
    m->v = sp_rig_matrix_make(format, KV_HEADS * HEAD, D, 4);
    m->o = sp_rig_matrix_make(format, D, HEADS * HEAD, 5);
    m->gate = sp_rig_matrix_make(format, FF, D, 6);
    m->up = sp_rig_matrix_make(format, FF, D, 7);
    m->down = sp_rig_matrix_make(format, D, FF, 8);
    if (rowwise) {
        sp_rig_columns(m->s, m->u, m->outliers, D, OUTLIERS, 10);
        for (int i = D; i < FF; i++) m->s[i] = m->u[i] = 1.0f;
        m->smooth = (sp_smooth){m->s, m->u, m->outliers, OUTLIERS};
        sp_rig_matrix *const linear[] = {&m->q, &m->k, &m->v, &m->o, &m->gate, &m->up, &m->down};
        for (size_t i = 0; i < sizeof linear / sizeof *linear; i++) sp_rig_matrix_smooth(linear[i], &m->smooth);
    }
    sp_fill_floats(m->norm, D, SP_FILL_NORMAL, 9);
    for (int i = 0; i < HEAD / 2; i++) m->inv_freq[i] = 1.0f / (float)(1 << i);
}

static void add_steps(model *m, bool private_units) {
    const size_t x = take(m, BATCH * D * sizeof(float)), q = take(m, BATCH * HEADS * HEAD * sizeof(float));
    const size_t cos = take(m, BATCH * HEAD / 2 * sizeof(float)), sin = take(m, BATCH * HEAD / 2 * sizeof(float));
    const sp_act h = act(m, D), a = act(m, HEADS * HEAD), f = act(m, FF);
    sp_act last = act(m, D);
    last.smooth = (sp_smooth){0};
    const size_t partial =
        take(m, sp_attention_partial_bytes(HEADS, KV_HEADS, HEAD, sp_pool_workers(m->pool), BATCH, CONTEXT_PAGES));
    const sp_norm norm = {.weight = m->norm, .eps = 1e-5f, .x_at = x, .out = h};
    sp_norm final = norm;
    final.out = last, final.gather = true;
    const sp_step steps[STEPS] = {
        {.kind = SP_OP_EMBED, .u = {.embed = {m->embedding.linear, x, cos, sin, m->inv_freq, HEAD / 2}}},
        {.kind = SP_OP_NORM, .u = {.norm = norm}},
        {.kind = SP_OP_QKV, .u = {.qkv = {{m->q.linear, m->k.linear, m->v.linear}, h, q, cos, sin, 0, HEAD, 0.36f}}},
        {.kind = SP_OP_ATTENTION, .u = {.attention = {q, a, 0, HEADS, KV_HEADS, HEAD, partial}}},
        {.kind = SP_OP_PROJECT, .u = {.project = {m->o.linear, a, x}}},
        {.kind = SP_OP_NORM, .u = {.norm = norm}},
        {.kind = SP_OP_GATE_UP, .u = {.gate_up = {m->gate.linear, m->up.linear, h, f}}},
        {.kind = SP_OP_PROJECT, .u = {.project = {m->down.linear, f, x}}},
    };
    const sp_step tail[] = {{.kind = SP_OP_OBSERVE, .u = {.observe = {f, m->peaks}}},
                            {.kind = SP_OP_NORM, .u = {.norm = final}},
                            {.kind = SP_OP_LOGITS, .u = {.logits = {m->embedding.linear, last}}}};
    sp_kernel_set kernels[SP_KIND_COUNT];
    sp_run_kernels(kernels, sp_rig_tiers(), private_units);
    SP_CHECK_INT(sp_program_create(&m->program, m->pool, m->kv, kernels, m->arena), SP_OK);
    for (int i = 0; i < STEPS; i++) {
        sp_step step = steps[i];
        step.matrix_rows = MATRIX_ROWS;
        SP_CHECK_INT(sp_program_add(m->program, &step), SP_OK);
    }
    for (int i = 0; i < 3; i++) SP_CHECK_INT(sp_program_add(m->program, &tail[i]), SP_OK);
}

static void open(model *m, sp_format format, bool rowwise, uint32_t workers, uint32_t matrix) {
    *m = (model){0};
    make_weights(m, format, rowwise);
    const bool private_units = matrix == 0 && workers > 1;  // core workers then run the matrix unit's kernels
    sp_pool_config config = sp_pool_config_default();
    config.stream = private_units;
    config.cores = workers, config.sme = matrix, config.counters = SP_COUNTERS, config.pin = false;
    SP_CHECK_INT(sp_pool_create(&m->pool, &config), SP_OK);
    SP_CHECK_INT(sp_pool_reserve_scratch(m->pool, sp_op_scratch_bytes(BATCH, HEADS, KV_HEADS, HEAD, D)), SP_OK);
    const sp_kv_config kv = {.layers = 1, .heads = KV_HEADS, .head_dim = HEAD, .pages = PAGES};
    SP_CHECK_INT(sp_kv_create(&m->kv, &kv), SP_OK);
    add_steps(m, private_units);
}

static void close(model *m) {
    sp_program_destroy(m->program);
    sp_kv_destroy(m->kv);
    sp_pool_destroy(m->pool);
    sp_rig_matrix *const all[] = {&m->embedding, &m->q, &m->k, &m->v, &m->o, &m->gate, &m->up, &m->down};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) sp_rig_matrix_free(all[i]);
}

// Runs tokens of up to two sequences, each with its own pages, the first `rowwise` as prompts; logits of all rows.
static sp_status run(model *m, const sp_span *spans, uint32_t count, uint32_t rowwise, float *logits) {
    int32_t ids[BATCH], positions[BATCH], rows[BATCH];
    uint32_t n = 0;
    for (uint32_t s = 0; s < count; s++) {
        for (uint32_t i = 0; i < spans[s].rows; i++, n++) {
            positions[n] = spans[s].start + (int32_t)i;
            ids[n] = (positions[n] * 7 + (int32_t)s) % VOCAB;
            rows[n] = (int32_t)n;
        }
    }
    const sp_batch batch = {n, ids, positions, spans, count, rows, n, logits, rowwise};
    return sp_program_run(m->program, &batch);
}

// A prefill over two pages, then the first sequence decoding beside the second one's prefill and decoding.
static void talk(model *m, float *logits) {
    int32_t first[CONTEXT_PAGES], second[CONTEXT_PAGES];
    for (int i = 0; i < CONTEXT_PAGES; i++) first[i] = sp_kv_alloc(m->kv), second[i] = sp_kv_alloc(m->kv);
    const struct {
        sp_span spans[2];
        uint32_t prompt;
    } steps[] = {
        {{{0, 120, 0, first}, {0}}, 120},
        {{{0, 40, 0, second}, {40, 1, 120, first}}, 40},
        {{{0, 1, 121, first}, {1, 1, 40, second}}, 0},
        {{{0, 20, 122, first}, {20, 1, 41, second}}, 20},
        {{{0, 1, 142, first}, {0}}, 0},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const sp_span *spans = steps[i].spans;
        SP_CHECK_INT(run(m, spans, spans[1].rows > 0 ? 2 : 1, steps[i].prompt, logits), SP_OK);
        logits += (spans[0].rows + spans[1].rows) * VOCAB;
    }
    for (int i = 0; i < CONTEXT_PAGES; i++) sp_kv_release(m->kv, first[i]), sp_kv_release(m->kv, second[i]);
}

enum { TALK = (120 + 41 + 2 + 21 + 1) * VOCAB, MOST_TALKS = 200 };

static uint64_t calls(const model *m, sp_slot slot) {
    uint64_t counts[SP_COUNTERS];
    sp_pool_counts(m->pool, counts);
    return counts[slot] + counts[SP_KIND_SME * SP_SLOT_COUNT + slot];
}

// Whether matrix units' workers, if any, have computed tiles.
static bool helped(const model *m, uint32_t matrix) {
    uint64_t counts[SP_COUNTERS], theirs = 0;
    sp_pool_counts(m->pool, counts);
    for (int slot = 0; slot < SP_SLOT_COUNT; slot++) theirs += counts[SP_KIND_SME * SP_SLOT_COUNT + slot];
    return (theirs > 0) == (matrix > 0);
}

SP_TEST(exec_program_gives_the_same_bits_with_any_workers) {
    static const sp_format formats[] = {SP_F32, SP_BF16, SP_Q4_0, SP_Q8_0, SP_Q4_1};
    static const struct {
        uint32_t cores, matrix;
    } teams[] = {{1, 0}, {3, 0}, {5, 0}, {1, 1}, {2, 2}};
    static float want[TALK], got[TALK];
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        const bool rowwise = !sp_rig_is_float(formats[f]) && formats[f] != SP_Q4_0;
        for (size_t w = 0; w < sizeof teams / sizeof *teams; w++) {
            model m;
            open(&m, formats[f], rowwise, teams[w].cores, teams[w].matrix);
            sp_test_label("%s rowwise=%d cores=%u matrix=%u", sp_format_get(formats[f])->name, rowwise, teams[w].cores,
                          teams[w].matrix);
            uint64_t ns[SP_OP_COUNT];
            for (int again = 0; again < MOST_TALKS && (again < 3 || !helped(&m, teams[w].matrix)); again++) {
                talk(&m, w == 0 && again == 0 ? want : got);
                if (w > 0 || again > 0) SP_CHECK_FLOATS(got, want, TALK);
            }
            SP_CHECK(helped(&m, teams[w].matrix));
            SP_CHECK(calls(&m, SP_SLOT_SOFTMAX) > 0 && calls(&m, SP_SLOT_MERGE) > 0);
            SP_CHECK_INT(calls(&m, SP_SLOT_GEMM_Q8R) > 0, rowwise);
            sp_program_times(m.program, ns);
            for (int op = 0; op < SP_OP_COUNT; op++) SP_CHECK(ns[op] > 0 && sp_op_name((sp_op_kind)op)[0] != 0);
            close(&m);
        }
    }
}

typedef struct nagging {
    sp_program *program;
    atomic_bool stop;
} nagging;

static void *nag(void *ctx) {
    nagging *n = ctx;
    while (!atomic_load(&n->stop)) sp_program_cancel(n->program);
    return NULL;
}

SP_TEST(exec_program_cancelled_leaves_no_trace) {
    static float want[BATCH * VOCAB], got[BATCH * VOCAB];
    model m;
    open(&m, SP_Q8_0, true, 3, 1);
    int32_t pages[CONTEXT_PAGES];
    for (int i = 0; i < CONTEXT_PAGES; i++) pages[i] = sp_kv_alloc(m.kv);
    const sp_span span = {0, BATCH, 0, pages};
    SP_CHECK_INT(run(&m, &span, 1, BATCH, want), SP_OK);
    nagging n = {.program = m.program};
    pthread_t thread;
    SP_REQUIRE(pthread_create(&thread, NULL, nag, &n) == 0);
    int cancelled = 0;
    for (int i = 0; i < 50; i++) {
        const sp_status status = run(&m, &span, 1, BATCH, got);
        SP_CHECK(status == SP_OK || status == SP_ERR_CANCELLED);
        if (status == SP_OK) SP_CHECK_FLOATS(got, want, BATCH * VOCAB);
        cancelled += status == SP_ERR_CANCELLED;
    }
    atomic_store(&n.stop, true);
    pthread_join(thread, NULL);
    SP_CHECK(cancelled > 0);
    sp_program_cancel(m.program);  // there is nothing to cancel, and the next run is not affected
    SP_CHECK_INT(run(&m, &span, 1, BATCH, got), SP_OK);
    SP_CHECK_FLOATS(got, want, BATCH * VOCAB);
    close(&m);
}

SP_TEST(exec_program_reports_memory_that_cannot_be_had) {
    sp_kernel_set kernels[SP_KIND_COUNT];
    sp_run_kernels(kernels, sp_rig_tiers(), false);
    sp_pool_config config = sp_pool_config_default();
    config.cores = 1;
    sp_pool *pool;
    sp_program *program = NULL;
    SP_REQUIRE(sp_pool_create(&pool, &config) == SP_OK);
    sp_memory_fail_from(1);
    SP_CHECK_INT(sp_program_create(&program, pool, NULL, kernels, 4096), SP_ERR_MEMORY);
    sp_memory_fail_from(0);
    SP_CHECK(program == NULL);
    sp_program_destroy(NULL);
    sp_pool_destroy(pool);
}
