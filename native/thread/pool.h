// SPDX-License-Identifier: Apache-2.0
// The thread pool does one thing: run a tile queue, join.
//
//     sp_pool_begin(pool, 0);                                   // a forward pass: wakes the workers
//     sp_pool_run(pool, &(sp_queue_spec){.tiles = n}, fn, ctx); // some hundred times
//     sp_pool_end(pool);                                        // workers may park again
//
// The calling thread is worker 0 and takes tiles too; the others are threads of the pool. A run ends when all tiles
// are finished. Nobody waits for a worker that has taken none: one that the system keeps off its core, because
// another process runs there, costs the run its help and nothing more. Only a worker that is taken off in the middle
// of a tile is waited for, first spinning, then yielding so that it may have this very core.
//
// Between runs of a pass idle workers spin, then yield, and are never put to sleep: a pass makes hundreds of runs in
// few milliseconds. Between passes they spin and yield for the configured times and then park on a condition
// variable, where they cost nothing.
//
// Tiles are computed in the default floating-point state on every worker: rounding to nearest, no flush-to-zero.
// Some libraries turn that on for a whole process; the caller's own state is put back at the end of a pass.
//
// Workers that run matrix kernels (SME workers; core workers where each core has a unit of its own) raise their
// streaming vector length first; the calling thread's is put back at the end of a pass (cpu/vector.h).
//
// After fork the child has no workers: its passes run on the calling thread alone. Shrinking the process's affinity
// while it runs benches the workers that have no CPU left; growing it back calls them in again.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "thread/affinity.h"
#include "thread/queue.h"

enum { SP_POOL_WORKERS_MAX = 256 };

typedef struct sp_pool sp_pool;

typedef struct sp_pool_config {
    uint32_t cores;     // core workers, the calling thread included; 0: as many as sp_topology.usable
    uint32_t sme;       // SME workers: one per shared unit
    uint64_t spin_ns;   // an idle worker spins that long …
    uint64_t yield_ns;  // … then offers its core to others that long, then parks
    uint32_t counters;  // length of sp_worker.counts
    bool pin;           // tie each core worker but the calling thread to a core of its own, where there are enough,
                        // and each SME worker to the cores that share its unit, where those are known
    bool stream;        // core workers run matrix kernels too; always so where each core has a unit of its own
} sp_pool_config;

// cores 0, sme 0, no counters, pinned; 100 us of spinning, 2 ms of yielding: a worker is still awake when the next
// token's pass follows a sampling step, and parked when the caller has gone to do something else.
sp_pool_config sp_pool_config_default(void);

// SP_ERR_ARGUMENT: more than SP_POOL_WORKERS_MAX workers. SP_ERR_SYSTEM: the system gives no more threads.
sp_status sp_pool_create(sp_pool **out, const sp_pool_config *config);

// Waits for the pass in progress, then ends the threads. The pool stays usable, with the calling thread alone.
// Not within a pass of the same thread. May be called twice.
void sp_pool_stop(sp_pool *pool);

// Stops and frees. No other thread may use the pool any more. NULL is allowed.
void sp_pool_destroy(sp_pool *pool);

// Workers of both kinds, the calling thread included. Their indices are 0 .. n-1, core workers first.
uint32_t sp_pool_workers(const sp_pool *pool);

// Gives every worker at least `bytes` of scratch memory; what it held is lost. Not within a pass.
sp_status sp_pool_reserve_scratch(sp_pool *pool, size_t bytes);

// Opens a pass: waits for the pass of another thread to end, wakes the workers of `kinds` (bits 1u << sp_kind;
// 0: cores), and looks at the CPUs that the process may use now.
void sp_pool_begin(sp_pool *pool, uint32_t kinds);
void sp_pool_end(sp_pool *pool);

// Runs fn over all tiles of `spec` and returns when every tile is finished; what the tiles wrote is visible to the
// caller and to later runs. Only between begin and end, on their thread, and not from within a tile. A kind that
// spec asks for and the pass has not is left out; the calling thread computes what nobody else may.
void sp_pool_run(sp_pool *pool, const sp_queue_spec *spec, sp_tile_fn fn, void *ctx);

// Adds up the workers' counters into out[config.counters]. Waits for a pass in progress to end.
void sp_pool_counts(sp_pool *pool, uint64_t *out);

// Where a worker is. The calling thread is never pinned.
typedef struct sp_placement {
    sp_kind kind;
    sp_pin pin;
    int32_t cpu;   // the logical CPU asked for, the first of several; -1 when not asked
    uint32_t svl;  // bytes of its streaming vector, read back; 0: it runs no matrix kernels, or has not yet
    bool started;  // its thread has run and applied the rest; always true for worker 0
    bool active;   // takes part; false: benched, or the pool has no threads any more
} sp_placement;

void sp_pool_placement(const sp_pool *pool, uint32_t index, sp_placement *out);
