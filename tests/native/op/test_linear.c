// SPDX-License-Identifier: Apache-2.0
// The linear operators against plain loops: every format, rows that fill no panel, tokens that fill no panel, k that
// crosses the blocks that float weights are expanded in.
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/variants.h"
#include "op/matmul.h"
#include "op/rig.h"
#include "test.h"

static const uint32_t TOKENS[] = {1, 7, 16, 19, 40};

// What a product must give for token t and weight row r, within rounding; `size` is the sum of the terms' sizes.
static double plain(const sp_rig *rig, const sp_act *in, uint32_t tokens, const sp_rig_matrix *matrix, uint32_t t,
                    uint32_t r, double *size) {
    const bool is_float = sp_rig_is_float(matrix->linear.layout.format);
    double sum = 0.0;
    *size = 0.0;
    for (size_t i = 0; i < in->k; i++) {
        const double x =
            is_float ? (double)sp_rows(&rig->run, in->rows_at)[t * in->k + i] : sp_rig_packed(rig, in, tokens, t, i);
        const double term = x * (double)matrix->values[r * in->k + i];
        sum += term;
        *size += fabs(term);
    }
    return sum;
}

// A random activation matrix in the form that `format` wants.
static sp_act input(sp_rig *rig, sp_format format, uint32_t tokens, size_t k) {
    const sp_act act = sp_rig_act(rig, tokens, k, true, !sp_rig_is_float(format), 11);
    if (!sp_rig_is_float(format)) sp_rig_pack(rig, &act, tokens);
    return act;
}

static void open(sp_rig *rig, sp_tier tier, uint32_t tokens) {
    sp_rig_open(rig, tier, 1 << 20, sp_matmul_scratch_bytes(tokens));
    rig->run.batch.tokens = tokens;
}

typedef void (*check)(sp_tier tier, sp_format format, uint32_t tokens, uint32_t rows, size_t k);

static void each_case(check one, const uint32_t *rows, size_t count) {
    for (sp_tier tier = SP_TIER_REF; tier < SP_TIER_COUNT; tier++) {
        if (!(sp_rig_tiers() >> tier & 1)) continue;
        for (int format = 0; format < SP_FORMAT_COUNT; format++) {
            for (size_t i = 0; i < count; i++) {
                const size_t wide = sp_rig_is_float((sp_format)format) ? 1032 : 1056;
                const uint32_t tokens = TOKENS[i % (sizeof TOKENS / sizeof *TOKENS)];
                sp_test_label("%s %s tokens=%u rows=%u", sp_tier_name(tier), sp_format_get(format)->name, tokens,
                              rows[i]);
                one(tier, (sp_format)format, tokens, rows[i], i == 0 ? wide : 96);
            }
        }
    }
}

static void project(sp_tier tier, sp_format format, uint32_t tokens, uint32_t rows, size_t k) {
    sp_rig rig;
    open(&rig, tier, tokens);
    sp_rig_matrix matrix = sp_rig_matrix_make(format, rows, k, 3);
    const sp_act in = input(&rig, format, tokens, k), x = sp_rig_act(&rig, tokens, rows, true, false, 5);
    float *before = sp_alloc(tokens * rows, sizeof *before), *after = sp_rows(&rig.run, x.rows_at);
    memcpy(before, after, tokens * rows * sizeof *before);
    const sp_project op = {.weight = matrix.linear, .in = in, .x_at = x.rows_at};
    SP_RIG_RUN(project, &op, &rig);
    for (uint32_t t = 0; t < tokens; t++) {
        for (uint32_t r = 0; r < rows; r++) {
            double size, want = (double)before[t * rows + r] + plain(&rig, &in, tokens, &matrix, t, r, &size);
            SP_CHECK(fabs((double)after[t * rows + r] - want) <= 1e-5 * (size + 1.0));
        }
    }
    sp_free(before);
    sp_rig_matrix_free(&matrix);
    sp_rig_close(&rig);
}

SP_TEST(op_linear_project_adds_the_product) {
    static const uint32_t rows[] = {40, 8, 72, 64, 136};
    each_case(project, rows, 5);
}

static void gate_up(sp_tier tier, sp_format format, uint32_t tokens, uint32_t rows, size_t k) {
    sp_rig rig;
    open(&rig, tier, tokens);
    sp_rig_matrix gate = sp_rig_matrix_make(format, rows, k, 3), up = sp_rig_matrix_make(format, rows, k, 4);
    const sp_act in = input(&rig, format, tokens, k);
    const sp_act out = sp_rig_act(&rig, tokens, rows, true, rows % SP_GROUP == 0, 5);
    const sp_gate_up op = {.gate = gate.linear, .up = up.linear, .in = in, .out = out};
    SP_RIG_RUN(gate_up, &op, &rig);
    for (uint32_t t = 0; t < tokens; t++) {
        for (uint32_t r = 0; r < rows; r++) {
            double g_size, u_size;
            const double g = plain(&rig, &in, tokens, &gate, t, r, &g_size);
            const double u = plain(&rig, &in, tokens, &up, t, r, &u_size);
            const double got = (double)sp_rows(&rig.run, out.rows_at)[t * rows + r];
            SP_CHECK(fabs(got - g / (1.0 + exp(-g)) * u) <= 1e-5 * (1.0 + g_size) * (1.0 + u_size));
        }
        for (uint32_t r = 0; out.q_at != SP_ABSENT && r < rows; r++) {
            const sp_act_panel panel = sp_act_panel_at(&rig.run, &out, sp_all_rows(&rig.run), t / SP_TOKENS);
            const double step = (double)panel.d[r / SP_GROUP * panel.width + t % SP_TOKENS];
            const double row = (double)sp_rows(&rig.run, out.rows_at)[t * rows + r];
            SP_CHECK(fabs(sp_rig_packed(&rig, &out, tokens, t, r) - row) <= 0.501 * step);
        }
    }
    sp_rig_matrix_free(&gate);
    sp_rig_matrix_free(&up);
    sp_rig_close(&rig);
}

SP_TEST(op_linear_gate_up_activates_and_packs) {
    static const uint32_t rows[] = {40, 8, 24, 32, 160};
    each_case(gate_up, rows, 5);
}

static void logits(sp_tier tier, sp_format format, uint32_t tokens, uint32_t rows, size_t k) {
    sp_rig rig;
    open(&rig, tier, tokens);
    sp_rig_matrix matrix = sp_rig_matrix_make(format, rows, k, 3);
    const sp_act in = input(&rig, format, tokens, k);
    rig.run.batch.logits = sp_rows(&rig.run, sp_rig_take(&rig, tokens * rows * sizeof(float)));
    rig.run.batch.logit_count = tokens;
    const sp_logits op = {.weight = matrix.linear, .in = in};
    SP_RIG_RUN(logits, &op, &rig);
    for (uint32_t t = 0; t < tokens; t++) {
        for (uint32_t r = 0; r < rows; r++) {
            double size, want = plain(&rig, &in, tokens, &matrix, t, r, &size);
            SP_CHECK(fabs((double)rig.run.batch.logits[t * rows + r] - want) <= 1e-5 * (size + 1.0));
        }
    }
    sp_rig_matrix_free(&matrix);
    sp_rig_close(&rig);
}

SP_TEST(op_linear_logits_of_any_vocabulary) {
    static const uint32_t rows[] = {17, 1, 128, 279, 15};
    each_case(logits, rows, 5);
}
