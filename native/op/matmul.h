// SPDX-License-Identifier: Apache-2.0
// The product of an activation matrix with a handful of weight panels, for all tokens of a batch.
#pragma once

#include "op/op.h"

// The weight panels of one tile, which may come from several matrices.
typedef struct sp_tile_weights {
    const sp_linear *linear[SP_TILE_PANELS];
    uint32_t panel[SP_TILE_PANELS];
    uint32_t count;
} sp_tile_weights;

// Adds panels [first, last) of a matrix to a tile.
void sp_tile_weights_add(sp_tile_weights *tile, const sp_linear *linear, uint32_t first, uint32_t last);

// Receives the product for one panel of tokens: y[t * ldy + 16 * i + r] for token first + t, weight panel i, row r.
typedef struct sp_product {
    const float *y;
    size_t ldy;
    uint32_t first, tokens;
} sp_product;
typedef void (*sp_epilogue)(const void *op, const sp_run *run, const sp_worker *worker, const sp_product *product,
                            const void *tile);

// Computes in x weights^T panel by panel of tokens and hands each result to the epilogue, with `op` and `tile`.
typedef struct sp_matmul {
    const sp_act *in;
    sp_extent rows;
    const sp_tile_weights *weights;
    sp_epilogue epilogue;
    const void *op, *tile;
    uint32_t turn;  // tiles with different turns take the rowwise rows in different order
} sp_matmul;

void sp_matmul_run(const sp_run *run, const sp_worker *worker, const sp_matmul *m);

// Its rowwise rows, whose float panels are in y already. Scratch is laid out as y [tokens][ldy], then SP_MATMUL_ROOM.
void sp_matmul_rowwise(const sp_run *run, const sp_worker *worker, const sp_matmul *m, float *y, size_t ldy);

static inline bool sp_linear_is_float(const sp_linear *linear) {
    return sp_format_get(linear->layout.format)->block == 1;
}

// Scratch that it needs, in bytes: the product, then room for what weights are expanded to. Rowwise: int8 panels, of
// any k at least one, their scales and their outlier columns; float weights: strips.
enum {
    SP_EXPANDED = SP_ROWWISE_K * SP_PANEL_ROWS,
    SP_SCALES = SP_TILE_PANELS * SP_PANEL_ROWS * 4,
    SP_COLUMNS = SP_TILE_PANELS * SP_OUTLIERS * SP_PANEL_ROWS * 4,
    SP_MATMUL_ROOM = SP_EXPANDED + SP_SCALES + SP_COLUMNS,
};
_Static_assert(SP_MATMUL_ROOM >= SP_TILE_PANELS * SP_K_BLOCK * SP_PANEL_ROWS * sizeof(float), "room for strips");
size_t sp_matmul_scratch_bytes(uint32_t max_tokens);

// Float product of any size by the kernel of `slot` (SP_SLOT_GEMM_F32 or SP_SLOT_GEMM_F16), cut into its tiles.
// n is a multiple of 16.
void sp_gemm_f(const sp_run *run, const sp_worker *worker, sp_slot slot, sp_gemm_f_args args);
