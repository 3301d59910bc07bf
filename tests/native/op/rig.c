// SPDX-License-Identifier: Apache-2.0
#include "op/rig.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/memory.h"
#include "kernel/variants.h"
#include "test.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

enum { FENCE = 2 * SP_LINE, CANARY = 0xa5 };

void sp_rig_open(sp_rig *rig, sp_tier tier, size_t arena_bytes, size_t scratch_bytes) {
    *rig = (sp_rig){.bytes = arena_bytes};
    sp_run_kernels(rig->kernels, sp_rig_tiers() & ((2u << tier) - 1), false);
    rig->run = (sp_run){.kernels = rig->kernels, .arena = sp_alloc_aligned(SP_LINE, arena_bytes, 1), .workers = 1};
    rig->worker = (sp_worker){.kind = SP_TIERS_SME >> tier & 1 ? SP_KIND_SME : SP_KIND_CORE,
                              .counts = rig->counts,
                              .scratch = sp_alloc_aligned(SP_LINE, scratch_bytes, 1),
                              .scratch_bytes = scratch_bytes};
    memset(rig->run.arena, CANARY, arena_bytes);
    ASAN_POISON_MEMORY_REGION(rig->run.arena, arena_bytes);
}

size_t sp_rig_take(sp_rig *rig, size_t bytes) {
    const size_t used = rig->count > 0 ? rig->end[rig->count - 1] : 0;
    const size_t at = (used + FENCE) / SP_LINE * SP_LINE;
    if (rig->count == SP_RIG_BUFFERS || at + bytes + FENCE > rig->bytes) {
        sp_test_fail(__FILE__, __LINE__, "the rig's arena of %zu bytes is full", rig->bytes);
        return 0;
    }
    ASAN_UNPOISON_MEMORY_REGION(rig->run.arena + at, bytes);
    memset(rig->run.arena + at, 0, bytes);
    rig->begin[rig->count] = at;
    rig->end[rig->count++] = at + bytes;
    return at;
}

static void check_fences(const sp_rig *rig) {
    for (size_t b = 0, at = 0; b <= rig->count; b++) {
        const size_t stop = b < rig->count ? rig->begin[b] : rig->bytes;
        size_t touched = 0;
        for (; at < stop; at++) touched += rig->run.arena[at] != CANARY;
        if (touched > 0) sp_test_fail(__FILE__, __LINE__, "%zu bytes written before buffer %zu", touched, b);
        if (b < rig->count) at = rig->end[b];
    }
}

void sp_rig_close(sp_rig *rig) {
    ASAN_UNPOISON_MEMORY_REGION(rig->run.arena, rig->bytes);
    check_fences(rig);
    sp_free(rig->run.arena);
    sp_free(rig->worker.scratch);
}

static sp_extent extent(const sp_rig *rig, uint32_t tokens) { return (sp_extent){tokens, rig->run.batch.rowwise}; }

sp_act sp_rig_act(sp_rig *rig, uint32_t tokens, size_t k, bool rows, bool panels, uint64_t seed) {
    sp_act act = {.k = k, .rows_at = SP_ABSENT, .q_at = SP_ABSENT, .arrived_at = SP_ABSENT};
    if (rows) {
        act.rows_at = sp_rig_take(rig, tokens * k * sizeof(float));
        sp_fill_floats(sp_rows(&rig->run, act.rows_at), tokens * k, SP_FILL_NORMAL, seed);
    }
    if (panels) {
        const size_t plane = tokens * (k / SP_GROUP) * sizeof(float);
        act.q_at = sp_rig_take(rig, tokens * k);
        act.d_at = sp_rig_take(rig, plane);
        act.neg_at = sp_rig_take(rig, plane);
        act.sum_at = sp_rig_take(rig, plane);
        act.arrived_at = sp_rig_take(rig, sp_panels_of(extent(rig, tokens)) * sizeof(atomic_uint));
    }
    return act;
}

void sp_rig_columns(float *s, float *u, int32_t *columns, size_t k, uint32_t outliers, uint64_t seed) {
    for (size_t i = 0; i < k; i++) {
        s[i] = sp_random_float(&seed, 0.25f, 4.0f);
        u[i] = 1.0f / s[i];
    }
    for (uint32_t i = 0; i < outliers; i++) {
        columns[i] = (int32_t)((2 * i + 1) * k / (2 * outliers));
        s[columns[i]] = u[columns[i]] = 0.0f;
    }
}

void sp_rig_smooth(sp_rig *rig, sp_act *act, uint32_t tokens, uint32_t outliers, uint64_t seed) {
    const uint32_t rowwise = rig->run.batch.rowwise, padded = (rowwise + 15) / 16 * 16;
    act->q_at = sp_rig_take(rig, (padded + tokens - rowwise) * act->k);
    act->scale_at = sp_rig_take(rig, rowwise * sizeof(float));
    act->row_neg_at = sp_rig_take(rig, rowwise * sizeof(int32_t));
    act->outliers_at = sp_rig_take(rig, rowwise * outliers * sizeof(float));
    float *s = sp_rows(&rig->run, sp_rig_take(rig, act->k * sizeof *s));
    float *u = sp_rows(&rig->run, sp_rig_take(rig, act->k * sizeof *u));
    int32_t *columns = (int32_t *)(void *)(rig->run.arena + sp_rig_take(rig, outliers * sizeof *columns));
    sp_rig_columns(s, u, columns, act->k, outliers, seed);
    act->smooth = (sp_smooth){.s = s, .u = u, .outliers = columns, .outlier_count = outliers};
}

void sp_rig_pack(sp_rig *rig, const sp_act *act, uint32_t tokens) {
    for (uint32_t p = 0; p < sp_panels_of(extent(rig, tokens)); p++) {
        const sp_act_panel panel = sp_act_panel_at(&rig->run, act, extent(rig, tokens), p);
        for (uint32_t t = 0; t < panel.width; t++) {
            const float *x = sp_rows(&rig->run, act->rows_at) + (panel.first + t) * act->k;
            sp_act_quantise_row(&rig->run, &rig->worker, act, &panel, t, x);
        }
    }
}

double sp_rig_packed(const sp_rig *rig, const sp_act *act, uint32_t tokens, uint32_t t, size_t i) {
    const sp_extent rows = extent(rig, tokens);
    const sp_act_panel panel = sp_act_panel_at(&rig->run, act, rows, sp_panel_of(rows, t));
    const size_t slot = t - panel.first;
    return (double)panel.q[(i / 4 * panel.width + slot) * 4 + i % 4] *
           (double)panel.d[i / SP_GROUP * panel.width + slot];
}

static void random_row(sp_format format, uint8_t *row, size_t k, uint64_t *random) {
    const sp_format_info *info = sp_format_get(format);
    for (size_t block = 0; block < k / info->block; block++, row += info->bytes) {
        const float value = sp_random_float(random, -1.0f, 1.0f);
        uint16_t half = sp_f32_to_f16(value);
        if (format == SP_BF16) half = sp_f32_to_bf16(value);
        for (size_t i = 2; i < info->bytes; i++) row[i] = (uint8_t)sp_test_random(random);
        if (format == SP_F32) memcpy(row, &value, sizeof value);
        else memcpy(row, &half, sizeof half);  // the block's scale, or the value itself
        if (format == SP_Q4_1) memcpy(row + 2, &(uint16_t){sp_f32_to_f16(-7.5f * value)}, 2);
    }
}

sp_rig_matrix sp_rig_matrix_make(sp_format format, uint32_t rows, size_t k, uint64_t seed) {
    const sp_format_info *info = sp_format_get(format);
    const size_t row_bytes = k / info->block * info->bytes;
    sp_rig_matrix matrix = {.linear = {.rows = rows}, .values = sp_alloc(rows * k, sizeof(float))};
    sp_panel_layout *layout = &matrix.linear.layout;
    if (sp_panel_layout_make(layout, format, k) != SP_OK) sp_test_fail(__FILE__, __LINE__, "no layout for k = %zu", k);
    matrix.linear.panels = matrix.panels = sp_alloc(sp_panel_count(rows), layout->bytes);
    uint8_t *file = sp_alloc(rows, row_bytes);
    for (uint32_t r = 0; r < rows; r++) {
        random_row(format, file + r * row_bytes, k, &seed);
        sp_format_row_f32(format, matrix.values + r * k, file + r * row_bytes, k);
    }
    for (uint32_t p = 0; p < sp_panel_count(rows); p++) {
        const void *of_panel[SP_PANEL_ROWS] = {0};
        for (uint32_t r = 0; r < SP_PANEL_ROWS && p * SP_PANEL_ROWS + r < rows; r++)
            of_panel[r] = file + (p * SP_PANEL_ROWS + r) * row_bytes;
        sp_panel_pack(layout, matrix.panels + p * layout->bytes, of_panel);
    }
    sp_free(file);
    return matrix;
}

void sp_rig_matrix_smooth(sp_rig_matrix *matrix, const sp_smooth *smooth) {
    const size_t k = matrix->linear.layout.k, rows = matrix->linear.rows, padded = sp_panel_count(rows) * SP_PANEL_ROWS;
    matrix->inv = sp_alloc(padded, sizeof(float)), matrix->scale = sp_alloc(padded, sizeof(float));
    for (size_t r = 0; r < rows; r++) {
        float amax = 0.0f;
        for (size_t j = 0; j < k; j++) amax = fmaxf(amax, fabsf(matrix->values[r * k + j] * smooth->s[j]));
        matrix->inv[r] = amax > 0.0f ? 127.0f / amax : 0.0f;
        matrix->scale[r] = amax / 127.0f;
    }
    matrix->linear.inv = matrix->inv, matrix->linear.scale = matrix->scale;
}

void sp_rig_matrix_free(sp_rig_matrix *matrix) {
    sp_free(matrix->panels);
    sp_free(matrix->values);
    sp_free(matrix->inv);
    sp_free(matrix->scale);
}

bool sp_rig_is_float(sp_format format) { return sp_format_get(format)->block == 1; }

uint32_t sp_rig_tiers(void) {
    sp_cpu cpu;
    sp_cpu_detect(&cpu);
    return sp_kernel_tiers_supported(&cpu) & sp_kernel_tiers_built();
}
