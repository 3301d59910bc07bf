// SPDX-License-Identifier: Apache-2.0
// The rowwise class in the operators, bit for bit against its definition written out here: batches of one
// class and of both, rows that fill no panel, a tile that is expanded in several groups, outlier columns.
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/declare.h"
#include "kernel/variants.h"
#include "op/matmul.h"
#include "op/rig.h"
#include "test.h"

typedef struct batch {
    uint32_t tokens, rowwise;
} batch;

static const batch BATCHES[] = {{1, 1}, {40, 40}, {40, 23}, {21, 16}, {17, 1}, {90, 83}, {9, 0}};
enum { BATCH_COUNT = sizeof BATCHES / sizeof *BATCHES };

static void open(sp_rig *rig, sp_tier tier, batch b) {
    sp_rig_open(rig, tier, 3 << 20, sp_matmul_scratch_bytes(b.tokens));
    rig->run.batch.tokens = b.tokens, rig->run.batch.rowwise = b.rowwise;
    rig->run.workers = 2;  // so that tiles take their turns
}

// int8 values and scale of one row of x.
static float quantised(const sp_smooth *smooth, const float *x, size_t k, int8_t *q) {
    float amax = 0.0f;
    for (size_t i = 0; i < k; i++) amax = fmaxf(amax, fabsf(x[i] * smooth->u[i]));
    for (size_t i = 0; i < k; i++) q[i] = (int8_t)rintf(x[i] * smooth->u[i] * (127.0f / amax));
    return amax / 127.0f;
}

// int8 values of row r of a matrix, expanded by the definition of its format.
static void expanded(const sp_rig_matrix *matrix, const sp_smooth *smooth, uint32_t r, int8_t *e) {
    const sp_linear *linear = &matrix->linear;
    const size_t k = linear->layout.k;
    const sp_expand_r_args args = {.dst = sp_alloc(SP_PANEL_ROWS * k, 1),
                                   .w = linear->panels + r / SP_PANEL_ROWS * linear->layout.bytes,
                                   .inv = linear->inv + r / SP_PANEL_ROWS * SP_PANEL_ROWS,
                                   .s = smooth->s,
                                   .k = k};
    if (linear->layout.format == SP_Q4_0) sp_expand_q8r_q4s32_1x16_ref(&args);
    else if (linear->layout.format == SP_Q4_1) sp_expand_q8r_q4a32_1x16_ref(&args);
    else sp_expand_q8r_q8s32_1x16_ref(&args);
    for (size_t i = 0; i < k; i++) e[i] = args.dst[(i / 4 * SP_PANEL_ROWS + r % SP_PANEL_ROWS) * 4 + i % 4];
    sp_free(args.dst);
}

// The products of the first `rowwise` rows of x with a matrix, [rowwise][rows].
static float *products(const sp_rig_matrix *matrix, const sp_smooth *smooth, const float *x, uint32_t rowwise) {
    const size_t k = matrix->linear.layout.k, rows = matrix->linear.rows;
    float *y = sp_alloc(rowwise * rows + 1, sizeof *y), *scales = sp_alloc(rowwise + 1, sizeof *scales);
    int8_t *a = sp_alloc(rowwise * k + 1, 1), *e = sp_alloc(k, 1);
    for (uint32_t t = 0; t < rowwise; t++) scales[t] = quantised(smooth, x + t * k, k, a + t * k);
    for (uint32_t r = 0; r < rows; r++) {
        expanded(matrix, smooth, r, e);
        for (uint32_t t = 0; t < rowwise; t++) {
            int32_t dot = 0;
            for (size_t i = 0; i < k; i++) dot += a[t * k + i] * e[i];
            float sum = (float)dot * (matrix->scale[r] * scales[t]);
            for (uint32_t i = 0; i < smooth->outlier_count; i++) {
                const size_t column = (size_t)smooth->outliers[i];
                sum = fmaf(x[t * k + column], matrix->values[r * k + column], sum);
            }
            y[t * rows + r] = sum;
        }
    }
    sp_free(scales), sp_free(a), sp_free(e);
    return y;
}

// Rows of x, their panels made, with a rowwise form.
static sp_act input(sp_rig *rig, batch b, size_t k, uint32_t outliers) {
    sp_act in = sp_rig_act(rig, b.tokens, k, true, true, 11);
    sp_rig_smooth(rig, &in, b.tokens, outliers, 12);
    sp_rig_pack(rig, &in, b.tokens);
    return in;
}

static void project(sp_tier tier, sp_format format, batch b, uint32_t rows, size_t k, uint32_t outliers) {
    sp_rig rig;
    open(&rig, tier, b);
    const sp_act in = input(&rig, b, k, outliers), x = sp_rig_act(&rig, b.tokens, rows, true, false, 5);
    sp_rig_matrix matrix = sp_rig_matrix_make(format, rows, k, 3);
    sp_rig_matrix_smooth(&matrix, &in.smooth);
    float *after = sp_rows(&rig.run, x.rows_at), *before = sp_alloc(b.tokens * rows, sizeof *before);
    memcpy(before, after, b.tokens * rows * sizeof *before);
    const sp_project op = {.weight = matrix.linear, .in = in, .x_at = x.rows_at};
    SP_RIG_RUN(project, &op, &rig);
    float *y = products(&matrix, &in.smooth, sp_rows(&rig.run, in.rows_at), b.rowwise);
    for (uint32_t i = 0; i < b.rowwise * rows; i++) y[i] = before[i] + y[i];
    SP_CHECK_FLOATS(after, y, b.rowwise * rows);

    // The other rows have the bits that they have in a batch of their own.
    sp_rig other;
    open(&other, tier, (batch){b.tokens - b.rowwise, 0});
    const sp_act part = sp_rig_act(&other, b.tokens - b.rowwise, k, true, true, 0),
                 left = sp_rig_act(&other, b.tokens - b.rowwise, rows, true, false, 0);
    const size_t skip = b.rowwise * k, grouped = (b.tokens - b.rowwise) * rows;
    memcpy(sp_rows(&other.run, part.rows_at), sp_rows(&rig.run, in.rows_at) + skip,
           (b.tokens - b.rowwise) * k * sizeof(float));
    memcpy(sp_rows(&other.run, left.rows_at), before + b.rowwise * rows, grouped * sizeof(float));
    sp_rig_pack(&other, &part, b.tokens - b.rowwise);
    const sp_project alone = {.weight = matrix.linear, .in = part, .x_at = left.rows_at};
    SP_RIG_RUN(project, &alone, &other);
    SP_CHECK_FLOATS(after + b.rowwise * rows, sp_rows(&other.run, left.rows_at), grouped);
    sp_rig_close(&other);
    sp_free(before), sp_free(y);
    sp_rig_matrix_free(&matrix);
    sp_rig_close(&rig);
}

static void each_tier(void (*one)(sp_tier tier, sp_format format)) {
    for (sp_tier tier = SP_TIER_REF; tier < SP_TIER_COUNT; tier++) {
        if (!(sp_rig_tiers() >> tier & 1)) continue;
        for (sp_format format = 0; format < SP_FORMAT_COUNT; format++)
            if (!sp_rig_is_float(format)) one(tier, format);
    }
}

static void project_cases(sp_tier tier, sp_format format) {
    for (uint32_t i = 0; i < BATCH_COUNT; i++) {
        sp_test_label("%s %s batch %u", sp_tier_name(tier), sp_format_get(format)->name, i);
        project(tier, format, BATCHES[i], i % 2 ? 72 : 40, i % 3 ? 96 : 160, i % 4);
    }
    sp_test_label("%s %s in groups", sp_tier_name(tier), sp_format_get(format)->name);
    project(tier, format, (batch){20, 19}, 64, 12320, 5);  // two panels of it fit the cache
}

SP_TEST(op_rowwise_project) { each_tier(project_cases); }

// gate_up leaves float rows, and the rows of the rowwise class as panels: those that the next layer quantises itself.
static void gate_up(sp_tier tier, sp_format format, batch b, bool float_gate) {
    enum { K = 96, ROWS = 288 };
    sp_rig rig, check;
    open(&rig, tier, b);
    const sp_act in = input(&rig, b, K, 2);
    sp_act out = sp_rig_act(&rig, b.tokens, ROWS, true, true, 5);
    sp_rig_smooth(&rig, &out, b.tokens, 3, 6);
    sp_rig_matrix gate = sp_rig_matrix_make(float_gate ? SP_F16 : format, ROWS, K, 3),
                  up = sp_rig_matrix_make(format, ROWS, K, 4);
    sp_rig_matrix_smooth(&gate, &in.smooth), sp_rig_matrix_smooth(&up, &in.smooth);
    const sp_gate_up op = {.gate = gate.linear, .up = up.linear, .in = in, .out = out};
    SP_RIG_RUN(gate_up, &op, &rig);
    const float *x = sp_rows(&rig.run, in.rows_at), *got = sp_rows(&rig.run, out.rows_at);
    float *u = products(&up, &in.smooth, x, b.rowwise), *g = products(&gate, &in.smooth, x, float_gate ? 0 : b.rowwise);
    if (!float_gate) {
        for (uint32_t t = 0; t < b.rowwise; t++)
            sp_swiglu_f32_f32_f32_1x1_ref(g + t * ROWS, g + t * ROWS, u + t * ROWS, ROWS);
        SP_CHECK_FLOATS(got, g, b.rowwise * ROWS);
    }
    open(&check, tier, b);
    sp_act again = sp_rig_act(&check, b.tokens, ROWS, true, true, 0);
    sp_rig_smooth(&check, &again, b.tokens, 3, 6);
    memcpy(sp_rows(&check.run, again.rows_at), got, b.tokens * ROWS * sizeof *got);
    sp_rig_pack(&check, &again, b.tokens);
    for (uint32_t p = 0; p < sp_panels_of(sp_all_rows(&rig.run)); p++) {
        const sp_act_panel a = sp_act_panel_at(&rig.run, &out, sp_all_rows(&rig.run), p),
                           c = sp_act_panel_at(&check.run, &again, sp_all_rows(&check.run), p);
        SP_CHECK_BYTES(a.q, c.q, (a.rowwise ? 16 : a.width) * (size_t)ROWS);
        SP_CHECK_FLOATS(a.d, c.d, a.rowwise ? a.width : a.width * ROWS / SP_GROUP);
        SP_CHECK_BYTES(a.neg, c.neg, (a.rowwise ? a.width : a.width * ROWS / SP_GROUP) * sizeof *a.neg);
    }
    SP_CHECK_FLOATS(sp_rows(&rig.run, out.outliers_at), sp_rows(&check.run, again.outliers_at), b.rowwise * 3);
    sp_rig_close(&check);
    sp_free(u), sp_free(g);
    sp_rig_matrix_free(&gate), sp_rig_matrix_free(&up);
    sp_rig_close(&rig);
}

static void gate_up_cases(sp_tier tier, sp_format format) {
    for (uint32_t i = 0; i < BATCH_COUNT; i++) {
        sp_test_label("%s %s batch %u", sp_tier_name(tier), sp_format_get(format)->name, i);
        gate_up(tier, format, BATCHES[i], i == 2);
    }
}

SP_TEST(op_rowwise_gate_up) { each_tier(gate_up_cases); }

// The norm makes both classes of panels, cut where the class changes.
SP_TEST(op_rowwise_norm) {
    enum { K = 96 };
    float weight[K];
    sp_fill_floats(weight, K, SP_FILL_NORMAL, 1);
    for (uint32_t i = 0; i < BATCH_COUNT; i++) {
        const batch b = BATCHES[i];
        sp_rig rig;
        open(&rig, SP_TIER_REF, b);
        const sp_act x = sp_rig_act(&rig, b.tokens, K, true, false, 2);
        sp_act out = sp_rig_act(&rig, b.tokens, K, true, true, 0);
        sp_rig_smooth(&rig, &out, b.tokens, 2, 3);
        const sp_norm op = {.weight = weight, .eps = 1e-5f, .x_at = x.rows_at, .out = out};
        sp_test_label("batch %u", i);
        SP_RIG_RUN(norm, &op, &rig);
        for (uint32_t t = 0; t < b.tokens; t++) {
            const sp_extent all = sp_all_rows(&rig.run);
            const sp_act_panel panel = sp_act_panel_at(&rig.run, &out, all, sp_panel_of(all, t));
            SP_CHECK_INT(panel.rowwise, t < b.rowwise);
            if (!panel.rowwise) continue;
            const float *row = sp_rows(&rig.run, out.rows_at) + t * K;
            const uint32_t slot = t - panel.first;
            int8_t q[K];
            SP_CHECK(panel.d[slot] == quantised(&out.smooth, row, K, q));
            for (size_t j = 0; j < K; j++) SP_CHECK_INT(panel.q[j / 4 * 64 + slot * 4 + j % 4], q[j]);
            for (uint32_t j = 0; j < out.smooth.outlier_count; j++)
                SP_CHECK(sp_rows(&rig.run, out.outliers_at)[t * 2 + j] == row[out.smooth.outliers[j]]);
        }
        sp_rig_close(&rig);
    }
}
