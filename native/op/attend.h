// SPDX-License-Identifier: Apache-2.0
// Inside of attention: one block of 64 keys and values against the query rows of a tile, and the tile's way out.
#pragma once

#include "op/matmul.h"
#include "tile/partition.h"

enum { SP_ATTEND_ROWS = 96, SP_BLOCK = SP_KV_PAGE };  // query rows of a tile; keys of a block

static inline uint32_t sp_attend_group(const sp_attention *op) { return op->heads / op->kv_heads; }
static inline size_t sp_attend_value_row(const sp_attention *op) { return ((size_t)op->head_dim + 15) / 16 * 16; }

// Tokens of a tile, whose heads of one group are its rows.
static inline uint32_t sp_attend_tokens(uint32_t group) { return group < SP_ATTEND_ROWS ? SP_ATTEND_ROWS / group : 1; }

// A tile's working memory, cut from the worker's scratch; vd is sp_attend_value_row.
typedef struct sp_attend {
    float *q, *s, *o, *ob, *k, *v;  // [rows][head_dim], [rows][64], [rows][vd], [rows][vd], strips, [64][vd]
    float *m, *l, *mb, *lb;         // [rows]
    uint8_t *visible;               // [rows]: keys of the block at hand that a row sees
} sp_attend;
sp_attend sp_attend_cut(const sp_attention *op, const sp_worker *worker);

// Keys and values of a block, and the kernel that multiplies with them as they are.
typedef struct sp_attend_block {
    const void *k, *v;
    sp_slot gemm;
} sp_attend_block;

// The page itself, or, where many rows share the work, the float16 of its first `keys` positions widened once.
sp_attend_block sp_attend_load(const sp_attention *op, const sp_run *run, const sp_worker *worker, int32_t page,
                               uint32_t head, uint32_t keys, uint32_t rows, const sp_attend *w);

// (ob, mb, lb) of rows [first, rows) for a block of which the last row sees `keys`.
void sp_attend_rows(const sp_attention *op, const sp_run *run, const sp_worker *worker, const sp_attend *w,
                    const sp_attend_block *kv, uint32_t first, uint32_t rows, uint32_t keys, const float *q);

// Whether a row's int8 form needs more than the heads of one group: one scale for all of them, or heads that do not
// fill quantisation groups.
bool sp_attend_whole_rows(const sp_attention *op, const sp_run *run, uint32_t row);

// o / l of a token's heads in one group, head by head, into the consumer's layout. `y` is room for the group.
void sp_attend_store(const sp_attention *op, const sp_run *run, const sp_worker *worker, uint32_t row, uint32_t head,
                     const float *o, size_t ldo, const float *l, size_t ldl, float *y);
