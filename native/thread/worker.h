// SPDX-License-Identifier: Apache-2.0
// Inside of the pool: its state, shared by pool.c (the caller's side) and worker.c (the threads' side).
#pragma once

#include <fenv.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "thread/pool.h"

typedef struct sp_thread {
    alignas(SP_LINE) sp_worker self;
    struct sp_pool *pool;
    pthread_t handle;
    sp_cpuset cpus;  // to be pinned to; empty: nowhere
    bool streams;    // runs matrix kernels: its vector length is raised
    _Atomic int pin;       // sp_pin
    _Atomic uint32_t svl;  // bytes of its streaming vector, where it runs matrix kernels
    _Atomic bool started;
} sp_thread;

struct sp_pool {
    sp_queue queue;

    // Tiles finished by the pool's threads since it was made, modulo 2^32. Written once per thread and run.
    alignas(SP_LINE) _Atomic uint32_t done;

    // Read by waiting threads, written once a pass at most.
    alignas(SP_LINE) _Atomic uint32_t hot;  // kinds that the pass in progress keeps awake; 0 between passes
    _Atomic uint32_t active;                // core workers that take part, the caller included
    _Atomic uint64_t spin_ns;               // config.spin_ns, or 0 where workers share CPUs
    _Atomic bool stop;

    // The caller's side.
    alignas(SP_LINE) pthread_mutex_t pass;  // held from begin to end
    _Atomic pid_t owner;                    // the process that the threads belong to
    fenv_t caller_float;                    // the caller's floating-point state outside of passes
    uint32_t caller_svl;                    // … and its streaming vector length; 0: not to be put back
    uint32_t expected;                      // value of `done` when the run in progress is finished
    _Atomic uint32_t threads;               // running threads of the pool: 0 after stop, and in a forked child
    uint32_t allowed;                       // CPUs that the process had at creation; 0: unknown
    uint32_t parked;                        // threads waiting on `wake`; guarded by lot
    pthread_mutex_t lot;                    // guards parking; hot, active and stop change under it
    pthread_cond_t wake;                    // … for a pass
    pthread_cond_t bench;                   // … to be active again
    sp_pool_config config;
    uint32_t workers;
    sp_thread worker[];
};

// One wait: pauses until `spin_ns` have gone by, then yields. Returns how long it has lasted, in nanoseconds, as of
// the last look at the clock.
typedef struct sp_patience {
    uint64_t start, waited;
    uint32_t turns;
} sp_patience;

uint64_t sp_patience_turn(sp_patience *patience, uint64_t spin_ns);

// The threads' main function; `thread` is an sp_thread.
void *sp_thread_main(void *thread);
