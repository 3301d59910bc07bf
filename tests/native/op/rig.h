// SPDX-License-Identifier: Apache-2.0
// What the operator tests share: a run of one worker over an arena of fenced buffers, and random matrices.
//
// Between the buffers lie bytes that nobody may touch. Writing there is noticed when the rig is closed; under
// AddressSanitizer reading there stops the test at once. Scratch has exactly the size that the operators ask for.
#pragma once

#include "op/op.h"

enum { SP_RIG_BUFFERS = 32 };

typedef struct sp_rig {
    sp_run run;
    sp_kernel_set kernels[SP_KIND_COUNT];
    sp_worker worker;
    uint64_t counts[SP_COUNTERS];
    size_t bytes, end[SP_RIG_BUFFERS], begin[SP_RIG_BUFFERS], count;  // of the arena, and of each buffer in it
} sp_rig;

// A rig with the kernels of one tier, whose worker is of the kind that runs them. `scratch`: see sp_op_scratch_bytes.
void sp_rig_open(sp_rig *rig, sp_tier tier, size_t arena_bytes, size_t scratch_bytes);

// Checks the fences and frees everything.
void sp_rig_close(sp_rig *rig);

// The offset of a new buffer of zeros.
size_t sp_rig_take(sp_rig *rig, size_t bytes);

// A new activation matrix with the wanted forms; its rows, if any, are random.
sp_act sp_rig_act(sp_rig *rig, uint32_t tokens, size_t k, bool rows, bool panels, uint64_t seed);

// Gives it a rowwise form: the first rig->run.batch.rowwise rows are of that class. Columns are smoothed at random, and
// `outliers` of them are left to float32.
void sp_rig_smooth(sp_rig *rig, sp_act *act, uint32_t tokens, uint32_t outliers, uint64_t seed);

// Random smoothing of k columns, every k / outliers-th an outlier.
void sp_rig_columns(float *s, float *u, int32_t *columns, size_t k, uint32_t outliers, uint64_t seed);

// Makes the int8 panels of an activation matrix from its rows.
void sp_rig_pack(sp_rig *rig, const sp_act *act, uint32_t tokens);

// The value that the int8 panels of an activation matrix hold for token t, column i; grouped rows.
double sp_rig_packed(const sp_rig *rig, const sp_act *act, uint32_t tokens, uint32_t t, size_t i);

// A packed matrix of random values, and those values, float32 [rows][k].
typedef struct sp_rig_matrix {
    sp_linear linear;
    uint8_t *panels;
    float *values, *inv, *scale;
} sp_rig_matrix;

sp_rig_matrix sp_rig_matrix_make(sp_format format, uint32_t rows, size_t k, uint64_t seed);
// The scales of its rowwise form, for inputs that are smoothed so.
void sp_rig_matrix_smooth(sp_rig_matrix *matrix, const sp_smooth *smooth);

void sp_rig_matrix_free(sp_rig_matrix *matrix);

// Whether a format's products take float rows rather than int8 panels.
bool sp_rig_is_float(sp_format format);

// The tiers that were built and that this machine runs, as bits.
uint32_t sp_rig_tiers(void);

// Runs all tiles of an operator, the last one first: order must not matter.
#define SP_RIG_RUN(name, op, rig)                                                       \
    do {                                                                                \
        uint32_t tiles = sp_##name##_tiles((op), &(rig)->run);                          \
        while (tiles > 0) sp_##name##_tile((op), &(rig)->run, --tiles, &(rig)->worker); \
    } while (0)
