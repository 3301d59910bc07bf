// SPDX-License-Identifier: Apache-2.0
#include "op/matmul.h"

#include <assert.h>

size_t sp_matmul_scratch_bytes(uint32_t max_tokens) {
    return (size_t)SP_TILE_PANELS * SP_PANEL_ROWS * sizeof(float) * max_tokens + SP_MATMUL_ROOM;
}

void sp_tile_weights_add(sp_tile_weights *tile, const sp_linear *linear, uint32_t first, uint32_t last) {
    for (uint32_t p = first; p < last; p++) {
        assert(tile->count < SP_TILE_PANELS);
        tile->linear[tile->count] = linear;
        tile->panel[tile->count++] = p;
    }
}

void sp_gemm_f(const sp_run *run, const sp_worker *worker, sp_slot slot, sp_gemm_f_args args) {
    const sp_kernel *kernel = sp_kernel_of(run, worker, slot);
    const size_t rows = args.m, columns = args.n;
    const size_t element = slot == SP_SLOT_GEMM_F32 ? sizeof(float) : sizeof(uint16_t);
    const sp_gemm_f_args whole = args;
    for (size_t j = 0; j < columns; j += kernel->nr) {
        args.n = columns - j < kernel->nr ? columns - j : kernel->nr;
        args.b = (const uint8_t *)whole.b + j / 16 * whole.strip * element;
        for (size_t i = 0; i < rows; i += kernel->mr) {
            args.m = rows - i < kernel->mr ? rows - i : kernel->mr;
            args.a = whole.a + i * whole.lda;
            args.y = whole.y + i * whole.ldy + j;
            SP_CALL(run, worker, slot, sp_gemm_f_fn)(&args);
        }
    }
}

static void grouped_panel(const sp_run *run, const sp_worker *worker, const sp_linear *linear, uint32_t panel,
                          const sp_act_panel *act, float *y, size_t ldy) {
    const sp_panel_layout *layout = &linear->layout;
    const sp_gemm_q_args args = {
        .w = linear->panels + panel * layout->bytes,
        .a = act->q,
        .ad = act->d,
        .an = act->neg,
        .as = act->sum,
        .width = act->width,
        .m = act->width,
        .groups = layout->k / SP_GROUP,
        .y = y,
        .ldy = ldy,
    };
    const sp_slot slot = layout->format == SP_Q4_0   ? SP_SLOT_GEMM_Q4S
                         : layout->format == SP_Q4_1 ? SP_SLOT_GEMM_Q4A
                                                     : SP_SLOT_GEMM_Q8S;
    const sp_worker core = sp_as_core(worker);
    SP_CALL(run, act->width < SP_TOKENS ? &core : worker, slot, sp_gemm_q_fn)(&args);
}

// Weight panels of float type against all tokens, block by block of k: each block is expanded once to float32 strips.
// The fma chain of an output element continues from block to block through y.
static void float_panels(const sp_run *run, const sp_worker *worker, const sp_act *in, uint32_t tokens,
                         const sp_tile_weights *tile, uint32_t first, uint32_t last, float *y, size_t ldy,
                         float *strips) {
    const sp_panel_layout *layout = &tile->linear[first]->layout;
    const size_t k = layout->k, element = layout->format == SP_F32 ? sizeof(float) : sizeof(uint16_t);
    for (size_t at = 0; at < k; at += SP_K_BLOCK) {
        const size_t block = k - at < SP_K_BLOCK ? k - at : SP_K_BLOCK;
        for (uint32_t i = first; i < last; i++) {
            const uint8_t *panel = tile->linear[i]->panels + tile->panel[i] * layout->bytes;
            const void *src = panel + at * SP_PANEL_ROWS * element;
            sp_gemm_f_args args = {.a = sp_rows(run, in->rows_at) + at,
                                   .lda = k,
                                   .b = src,
                                   .step = SP_PANEL_ROWS,
                                   .y = y + (size_t)i * SP_PANEL_ROWS,
                                   .ldy = ldy,
                                   .m = tokens,
                                   .n = SP_PANEL_ROWS,
                                   .k = block,
                                   .accumulate = at > 0};
            float *strip = strips + (size_t)(i - first) * SP_K_BLOCK * SP_PANEL_ROWS;
            if (layout->format == SP_F16) SP_CALL(run, worker, SP_SLOT_EXPAND_F16, sp_expand_fn)(strip, src, block);
            if (layout->format == SP_BF16) SP_CALL(run, worker, SP_SLOT_EXPAND_BF16, sp_expand_fn)(strip, src, block);
            if (layout->format == SP_F32) {
                sp_gemm_f(run, worker, SP_SLOT_GEMM_F32, args);
            } else if (i + 1 == last) {
                args.b = strips;
                args.strip = SP_K_BLOCK * SP_PANEL_ROWS;
                args.y = y + (size_t)first * SP_PANEL_ROWS;
                args.n = (size_t)(last - first) * SP_PANEL_ROWS;
                sp_gemm_f(run, worker, SP_SLOT_GEMM_F32, args);
            }
        }
    }
}

// Float panels of one matrix that lie side by side in the tile share their strips.
static uint32_t run_end(const sp_tile_weights *tile, uint32_t first) {
    uint32_t last = first + 1;
    while (last < tile->count && tile->linear[last] == tile->linear[first]) last++;
    return last;
}

void sp_matmul_run(const sp_run *run, const sp_worker *worker, const sp_matmul *m) {
    const sp_tile_weights *weights = m->weights;
    const size_t ldy = (size_t)weights->count * SP_PANEL_ROWS;
    float *y = worker->scratch, *strips = y + m->rows.tokens * ldy;
    for (uint32_t i = 0; i < weights->count; i = run_end(weights, i)) {
        if (!sp_linear_is_float(weights->linear[i])) continue;
        float_panels(run, worker, m->in, m->rows.tokens, weights, i, run_end(weights, i), y, ldy, strips);
    }
    const bool rowwise = m->in->smooth.u && m->rows.rowwise > 0;
    if (rowwise) sp_matmul_rowwise(run, worker, m, y, ldy);
    for (uint32_t p = rowwise ? sp_panel_of(m->rows, m->rows.rowwise) : 0; p < sp_panels_of(m->rows); p++) {
        const sp_act_panel act = sp_act_panel_at(run, m->in, m->rows, p);
        float *rows = y + act.first * ldy;
        for (uint32_t i = 0; i < weights->count; i++) {
            if (sp_linear_is_float(weights->linear[i])) continue;
            grouped_panel(run, worker, weights->linear[i], weights->panel[i], &act, rows + i * SP_PANEL_ROWS, ldy);
        }
        const sp_product product = {.y = rows, .ldy = ldy, .first = act.first, .tokens = act.width};
        m->epilogue(m->op, run, worker, &product, m->tile);
    }
}
