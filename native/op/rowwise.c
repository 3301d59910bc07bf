// SPDX-License-Identifier: Apache-2.0
// The rowwise rows of a product: a group of weight panels is expanded to int8 once and meets all tokens while it lies
// in the cache of its worker. Groups are as large as that allows, so activations are read as rarely as possible.
//
// Tokens go in blocks: large enough that a matrix unit is entered rarely, small enough that the block's product is
// still in cache when outlier columns are added and the epilogue takes it.
#include <string.h>

#include "op/matmul.h"
#include "tile/partition.h"

enum {
    BLOCK = 4 * SP_TOKENS,
    CACHE = 512 << 10,  // bytes of expanded panels
};

// Expanded panels [first, last) of a tile, side by side, and what belongs to them.
typedef struct group {
    uint32_t first, last;
    int8_t *w;       // [panel][k/4][16][4]
    float *scale;    // [panel][16]
    float *columns;  // [panel][outlier][16]: weights of the outlier columns
} group;

static sp_slot expand_slot(sp_format format) {
    return format == SP_Q4_0 ? SP_SLOT_EXPAND_Q4S : format == SP_Q4_1 ? SP_SLOT_EXPAND_Q4A : SP_SLOT_EXPAND_Q8S;
}

static void expand(const sp_run *run, const sp_worker *worker, const sp_matmul *m, const group *g) {
    const sp_smooth *smooth = &m->in->smooth;
    const size_t k = m->in->k;
    for (uint32_t i = g->first; i < g->last; i++) {
        const sp_linear *linear = m->weights->linear[i];
        const uint8_t *panel = linear->panels + m->weights->panel[i] * linear->layout.bytes;
        const size_t row = (size_t)m->weights->panel[i] * SP_PANEL_ROWS, at = i - g->first;
        const sp_expand_r_args args = {
            .dst = g->w + at * SP_PANEL_ROWS * k, .w = panel, .inv = linear->inv + row, .s = smooth->s, .k = k};
        SP_CALL(run, worker, expand_slot(linear->layout.format), sp_expand_r_fn)(&args);
        memcpy(g->scale + at * SP_PANEL_ROWS, linear->scale + row, SP_PANEL_ROWS * sizeof *g->scale);
        float *column = g->columns + at * smooth->outlier_count * SP_PANEL_ROWS;
        for (uint32_t j = 0; j < smooth->outlier_count; j++, column += SP_PANEL_ROWS)
            sp_panel_column_f32(&linear->layout, column, panel, (size_t)smooth->outliers[j]);
    }
}

// The product of rows [first, first + n) with a group, into its columns of y; y is at the first row.
static void multiply(const sp_run *run, const sp_worker *worker, const sp_act *in, const group *g, uint32_t first,
                     uint32_t n, float *y, size_t ldy) {
    const sp_act_panel panel = sp_act_panel_at(run, in, sp_all_rows(run), first / SP_TOKENS);
    const sp_smooth *smooth = &in->smooth;
    const size_t columns = (size_t)(g->last - g->first) * SP_PANEL_ROWS;
    y += (size_t)g->first * SP_PANEL_ROWS;
    const sp_gemm_r_args args = {.w = g->w,
                                 .a = panel.q,
                                 .wd = g->scale,
                                 .ad = panel.d,
                                 .an = panel.neg,
                                 .m = n,
                                 .n = columns,
                                 .k = in->k,
                                 .y = y,
                                 .ldy = ldy};
    SP_CALL(run, worker, SP_SLOT_GEMM_Q8R, sp_gemm_r_fn)(&args);
    if (smooth->outlier_count == 0) return;
    const sp_gemm_f_args outliers = {.a = sp_rows(run, in->outliers_at) + (size_t)first * smooth->outlier_count,
                                     .lda = smooth->outlier_count,
                                     .b = g->columns,
                                     .strip = (size_t)smooth->outlier_count * SP_PANEL_ROWS,
                                     .step = SP_PANEL_ROWS,
                                     .y = y,
                                     .ldy = ldy,
                                     .m = n,
                                     .n = columns,
                                     .k = smooth->outlier_count,
                                     .accumulate = true};
    const sp_worker core = sp_as_core(worker);
    sp_gemm_f(run, &core, SP_SLOT_GEMM_F32, outliers);
}

// Hands rows [first, first + n) to the epilogue, panel by panel of tokens.
static void hand_over(const sp_run *run, const sp_worker *worker, const sp_matmul *m, uint32_t first, uint32_t n,
                      const float *y, size_t ldy) {
    for (uint32_t t = 0; t < n; t += SP_TOKENS) {
        const sp_product product = {
            .y = y + t * ldy, .ldy = ldy, .first = first + t, .tokens = sp_least(SP_TOKENS, n - t)};
        m->epilogue(m->op, run, worker, &product, m->tile);
    }
}

void sp_matmul_rowwise(const sp_run *run, const sp_worker *worker, const sp_matmul *m, float *y, size_t ldy) {
    const sp_tile_weights *weights = m->weights;
    const uint32_t tokens = m->rows.rowwise, blocks = sp_tile_count(tokens, BLOCK);
    const uint32_t turn = m->turn % run->workers * blocks / run->workers;
    uint32_t from = 0, to = weights->count;  // its quantised panels
    while (from < to && sp_linear_is_float(weights->linear[from])) from++;
    while (from < to && sp_linear_is_float(weights->linear[to - 1])) to--;
    if (from == to) hand_over(run, worker, m, 0, tokens, y, ldy);
    const uint32_t fit = CACHE / (uint32_t)(SP_PANEL_ROWS * m->in->k), most = fit > 0 ? fit : 1;
    const bool at_once = to - from == weights->count && to - from <= most;  // no block's product has to wait in y
    group g = {.w = (int8_t *)(y + m->rows.tokens * ldy)};
    g.scale = (float *)(void *)(g.w + SP_EXPANDED);
    g.columns = (float *)(void *)(g.w + SP_EXPANDED + SP_SCALES);
    for (g.first = from; g.first < to; g.first = g.last) {
        g.last = g.first + sp_least(most, to - g.first);
        expand(run, worker, m, &g);
        for (uint32_t b = 0; b < blocks; b++) {
            const sp_range rows = sp_tile_range(tokens, BLOCK, (turn + b) % blocks);
            float *part = at_once ? y : y + rows.first * ldy;
            multiply(run, worker, m->in, &g, rows.first, rows.last - rows.first, part, ldy);
            if (g.last == to) hand_over(run, worker, m, rows.first, rows.last - rows.first, part, ldy);
        }
    }
}
