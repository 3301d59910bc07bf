// SPDX-License-Identifier: Apache-2.0
// The tile queue: one run's tiles, handed out by one atomic word.
//
// Tiles are numbered 0 .. tiles-1. Core workers take from the back, SME workers from the front, until they meet, so
// the two kinds walk towards each other and neither waits on a wrong guess of the other's speed.
//
// The word holds (generation, back, front). A claim is one compare-and-swap of the whole word, so it succeeds only in
// the very run it was computed for: a worker that wakes late, holding a word of an earlier run, cannot take a tile
// of a later one. The run's description lives beside the word and is read before the swap. It is rewritten only
// after the word says that all tiles are taken, so a swap that succeeds proves that what was read belongs to the
// run, and the swap's release keeps those reads before the next rewrite. Nothing of a run lives on its caller's stack.
// A generation has 32 bits: a worker would have to sleep through exactly 2^32 runs, and wake at an equal word.
#pragma once

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

typedef enum sp_kind {
    SP_KIND_CORE,  // runs on a CPU core; takes from the back
    SP_KIND_SME,   // drives a shared matrix unit; takes from the front
    SP_KIND_COUNT
} sp_kind;

// Who computes: what a tile function may know of its worker.
typedef struct sp_worker {
    uint32_t index;        // 0 is the thread that called sp_pool_run
    sp_kind kind;
    uint64_t *counts;      // its own call counters, as many as the pool was asked for; no other worker writes them
    void *scratch;         // its own memory, SP_LINE aligned, not kept between runs; NULL when none was reserved
    size_t scratch_bytes;
} sp_worker;

// Computes tiles [begin, end). Called by any number of workers at once, with disjoint ranges.
typedef void (*sp_tile_fn)(void *ctx, uint32_t begin, uint32_t end, const sp_worker *self);

// What a run hands out. Zeroes mean "no wish": {.tiles = n} lets every core worker take part.
typedef struct sp_queue_spec {
    uint32_t tiles;
    uint32_t kinds;                 // bits 1u << sp_kind of those who may take part; 0: cores only
    uint32_t least[SP_KIND_COUNT];  // tiles of one grab: at least (0: 1) …
    uint32_t most[SP_KIND_COUNT];  // … and at most (0: no limit). Between them a grab is a fair share of half the rest
} sp_queue_spec;

// A claim: the tiles and what to do with them.
typedef struct sp_grab {
    sp_tile_fn fn;
    void *ctx;
    uint32_t begin, end;
} sp_grab;

// One cache line, so that a waiting worker gets word and description in one transfer.
typedef struct sp_queue {
    alignas(SP_LINE) _Atomic uint64_t word;
    _Atomic(sp_tile_fn) fn;
    _Atomic(void *) ctx;
    _Atomic uint32_t tiles;
    _Atomic uint32_t unit;  // tiles counted as one in the word, which has room for 65,535
    _Atomic uint64_t grabs;  // least[0], most[0], least[1], most[1], in units of 16 bits each
    _Atomic uint32_t takers;
    _Atomic uint32_t kinds;
} sp_queue;

// Starts the next run; every tile of the run before must have been taken. `takers`: how many workers share it.
// The caller's own first grab comes along in `first`, unless spec->kinds excludes `kind`: then it is empty.
void sp_queue_open(sp_queue *queue, const sp_queue_spec *spec, sp_tile_fn fn, void *ctx, uint32_t takers, sp_kind kind,
                   sp_grab *first);

// Takes tiles for a worker of `kind`. False when none are left, or when this run has none for that kind.
bool sp_queue_take(sp_queue *queue, sp_kind kind, sp_grab *grab);

// Whether a worker of `kind` would find tiles now. Cheap enough to spin on.
bool sp_queue_ready(sp_queue *queue, sp_kind kind);
