// SPDX-License-Identifier: Apache-2.0
#include "thread/pool.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "cpu/vector.h"
#include "thread/worker.h"

enum {
    JOIN_SPIN_NS = 200000,  // more than most tiles take; longer means that a worker lost its core
    ADOPTING = -1,          // owner while a forked child puts the pool in order
};

#define CORES (1u << SP_KIND_CORE)
#define SMES (1u << SP_KIND_SME)

sp_pool_config sp_pool_config_default(void) {
    return (sp_pool_config){.spin_ns = 100000, .yield_ns = 2000000, .pin = true};
}

static void init_locks(sp_pool *pool) {
    pthread_mutex_init(&pool->pass, NULL);
    pthread_mutex_init(&pool->lot, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->bench, NULL);
}

// A forked child inherits the memory and none of the threads, and locks in whatever state: forget both, once.
static void adopt_if_forked(sp_pool *pool) {
    pid_t me = getpid(), owner = atomic_load_explicit(&pool->owner, memory_order_acquire);
    while (owner != me) {
        if (owner != ADOPTING && atomic_compare_exchange_strong(&pool->owner, &owner, ADOPTING)) {
            init_locks(pool);
            pool->threads = 0;
            atomic_store(&pool->hot, 0);
            atomic_store_explicit(&pool->owner, me, memory_order_release);
            return;
        }
        sched_yield();
        owner = atomic_load_explicit(&pool->owner, memory_order_acquire);
    }
}

static void lock_pass(sp_pool *pool) {
    adopt_if_forked(pool);
    pthread_mutex_lock(&pool->pass);
}

// Where a worker is to stay: a core worker on a core of its own, where there are enough; an SME worker on the cores
// that share its unit, since anywhere else it would drive another's. The caller's thread is left where it is.
static sp_cpuset place(const sp_pool *pool, const sp_topology *machine, uint32_t index) {
    const sp_pool_config *config = &pool->config;
    sp_cpuset cpus = {{0}};
    if (!config->pin || index == 0) return cpus;
    if (index >= config->cores) return sp_topology_unit_cpus(machine, index - config->cores);
    if (config->cores <= machine->allowed_count) sp_cpuset_add(&cpus, machine->allowed[index].cpu);
    return cpus;
}

static sp_status init_workers(sp_pool *pool, const sp_topology *machine) {
    const sp_pool_config *config = &pool->config;
    for (uint32_t i = 0; i < pool->workers; i++) {
        sp_thread *worker = &pool->worker[i];
        worker->pool = pool;
        worker->self.index = i;
        worker->self.kind = i < config->cores ? SP_KIND_CORE : SP_KIND_SME;
        worker->cpus = place(pool, machine, i);
        worker->streams = worker->self.kind == SP_KIND_SME || config->stream || machine->sme_private;
        worker->self.counts = sp_alloc_aligned(SP_LINE, config->counters, sizeof(uint64_t));
        if (worker->self.counts == NULL) return SP_ERR_MEMORY;
    }
    atomic_store(&pool->worker[0].started, true);
    return SP_OK;
}

static sp_status start_threads(sp_pool *pool) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the application's: its threads get them, not ours
    while (pool->threads + 1 < pool->workers) {
        sp_thread *worker = &pool->worker[pool->threads + 1];
        if (pthread_create(&worker->handle, NULL, sp_thread_main, worker) != 0) break;
        pool->threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pool->threads + 1 == pool->workers ? SP_OK : SP_ERR_SYSTEM;
}

sp_status sp_pool_create(sp_pool **out, const sp_pool_config *config) {
    *out = NULL;
    sp_topology machine;
    sp_topology_detect(&machine);
    uint32_t cores = config->cores > 0 ? config->cores : machine.usable;
    if (cores > SP_POOL_WORKERS_MAX || config->sme > SP_POOL_WORKERS_MAX - cores) return SP_ERR_ARGUMENT;
    uint32_t workers = cores + config->sme;
    sp_pool *pool = sp_alloc_aligned(SP_LINE, 1, sizeof(sp_pool) + workers * sizeof(sp_thread));
    if (pool == NULL) return SP_ERR_MEMORY;
    init_locks(pool);
    pool->config = *config;
    pool->config.cores = cores;
    pool->workers = workers;
    pool->allowed = sp_cpus_allowed();
    atomic_init(&pool->owner, getpid());
    atomic_init(&pool->active, cores);
    atomic_init(&pool->spin_ns, config->spin_ns);
    sp_status status = init_workers(pool, &machine);
    if (status == SP_OK) status = start_threads(pool);
    if (status != SP_OK) {
        sp_pool_destroy(pool);
        return status;
    }
    *out = pool;
    return SP_OK;
}

void sp_pool_stop(sp_pool *pool) {
    lock_pass(pool);
    pthread_mutex_lock(&pool->lot);
    atomic_store(&pool->stop, true);
    pthread_cond_broadcast(&pool->wake);
    pthread_cond_broadcast(&pool->bench);
    pthread_mutex_unlock(&pool->lot);
    for (; pool->threads > 0; pool->threads--) pthread_join(pool->worker[pool->threads].handle, NULL);
    pthread_mutex_unlock(&pool->pass);
}

void sp_pool_destroy(sp_pool *pool) {
    if (pool == NULL) return;
    sp_pool_stop(pool);
    for (uint32_t i = 0; i < pool->workers; i++) {
        sp_free(pool->worker[i].self.counts);
        sp_free(pool->worker[i].self.scratch);
    }
    pthread_cond_destroy(&pool->bench);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lot);
    pthread_mutex_destroy(&pool->pass);
    sp_free(pool);
}

uint32_t sp_pool_workers(const sp_pool *pool) { return pool->workers; }

static sp_status grow_scratch(sp_worker *worker, size_t bytes) {
    if (bytes <= worker->scratch_bytes) return SP_OK;
    void *scratch = sp_alloc_aligned(SP_LINE, bytes, 1);
    if (scratch == NULL) return SP_ERR_MEMORY;
    sp_free(worker->scratch);
    worker->scratch = scratch;
    worker->scratch_bytes = bytes;
    return SP_OK;
}

sp_status sp_pool_reserve_scratch(sp_pool *pool, size_t bytes) {
    lock_pass(pool);
    sp_status status = SP_OK;
    for (uint32_t i = 0; i < pool->workers && status == SP_OK; i++) status = grow_scratch(&pool->worker[i].self, bytes);
    pthread_mutex_unlock(&pool->pass);
    return status;
}

// Core workers for the CPUs that the process has now. Whoever asked for more workers than CPUs has them, but
// when CPUs are taken away later, as many workers go.
static uint32_t active_cores(const sp_pool *pool, uint32_t allowed) {
    uint32_t cores = pool->config.cores;
    return allowed > 0 && allowed < pool->allowed && allowed < cores ? allowed : cores;
}

static void raise_caller(sp_pool *pool) {
    sp_thread *me = &pool->worker[0];
    pool->caller_svl = me->streams ? sp_svl_raise() : 0;
    if (me->streams) atomic_store_explicit(&me->svl, sp_svl(), memory_order_relaxed);
}

void sp_pool_begin(sp_pool *pool, uint32_t kinds) {
    lock_pass(pool);
    fegetenv(&pool->caller_float);
    fesetenv(FE_DFL_ENV);
    raise_caller(pool);
    uint32_t allowed = pool->threads > 0 ? sp_cpus_allowed() : 0;
    uint32_t active = active_cores(pool, allowed);
    // A spinning worker is in the way where workers share a CPU.
    bool crowded = allowed > 0 && active + pool->config.sme > allowed;
    pthread_mutex_lock(&pool->lot);
    uint32_t before = atomic_exchange_explicit(&pool->active, active, memory_order_relaxed);
    atomic_store_explicit(&pool->spin_ns, crowded ? 0 : pool->config.spin_ns, memory_order_relaxed);
    atomic_store_explicit(&pool->hot, kinds != 0 ? kinds : CORES, memory_order_relaxed);
    if (active > before) pthread_cond_broadcast(&pool->bench);
    if (pool->parked > 0) pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lot);
}

void sp_pool_end(sp_pool *pool) {
    sp_svl_restore(pool->caller_svl);
    fesetenv(&pool->caller_float);
    atomic_store_explicit(&pool->hot, 0, memory_order_relaxed);
    pthread_mutex_unlock(&pool->pass);
}

// Workers that share a run of these kinds.
static uint32_t takers_of(sp_pool *pool, uint32_t kinds) {
    uint32_t cores = kinds & CORES ? atomic_load_explicit(&pool->active, memory_order_relaxed) : 0;
    return cores + (kinds & SMES ? pool->config.sme : 0);
}

// The workers that still compute have cores of their own, so spin; where they have not, leave them this one at once.
static void wait_until_done(sp_pool *pool) {
    sp_patience patience = {0};
    uint64_t spin_ns = atomic_load_explicit(&pool->spin_ns, memory_order_relaxed) > 0 ? JOIN_SPIN_NS : 0;
    while (atomic_load_explicit(&pool->done, memory_order_acquire) != pool->expected)
        sp_patience_turn(&patience, spin_ns);
}

void sp_pool_run(sp_pool *pool, const sp_queue_spec *spec, sp_tile_fn fn, void *ctx) {
    sp_thread *me = &pool->worker[0];
    sp_queue_spec run = *spec;
    run.kinds = (spec->kinds != 0 ? spec->kinds : CORES) & atomic_load_explicit(&pool->hot, memory_order_relaxed);
    uint32_t takers = pool->threads > 0 ? takers_of(pool, run.kinds) : 0;
    if (run.tiles == 0) return;
    if (takers == 0 || (run.kinds & CORES && (takers == 1 || run.tiles == 1))) {  // nobody to share with
        fn(ctx, 0, run.tiles, &me->self);
        return;
    }
    sp_grab grab;
    uint32_t finished = 0;
    sp_queue_open(&pool->queue, &run, fn, ctx, takers, SP_KIND_CORE, &grab);
    while (grab.begin < grab.end || sp_queue_take(&pool->queue, SP_KIND_CORE, &grab)) {
        fn(ctx, grab.begin, grab.end, &me->self);
        finished += grab.end - grab.begin;
        grab.end = grab.begin;
    }
    pool->expected += run.tiles - finished;
    wait_until_done(pool);
}

void sp_pool_counts(sp_pool *pool, uint64_t *out) {
    lock_pass(pool);
    memset(out, 0, pool->config.counters * sizeof *out);
    for (uint32_t i = 0; i < pool->workers; i++)
        for (uint32_t c = 0; c < pool->config.counters; c++) out[c] += pool->worker[i].self.counts[c];
    pthread_mutex_unlock(&pool->pass);
}

void sp_pool_placement(const sp_pool *pool, uint32_t index, sp_placement *out) {
    const sp_thread *worker = &pool->worker[index];
    bool core = worker->self.kind == SP_KIND_CORE;
    int32_t cpu = 0;
    while (cpu < SP_CPUS_MAX && !sp_cpuset_has(&worker->cpus, (uint32_t)cpu)) cpu++;
    *out = (sp_placement){
        .kind = worker->self.kind,
        .pin = (sp_pin)atomic_load(&worker->pin),
        .cpu = cpu < SP_CPUS_MAX ? cpu : -1,
        .svl = atomic_load(&worker->svl),
        .started = atomic_load(&worker->started),
        .active = index == 0 || (pool->threads > 0 && (!core || index < atomic_load(&pool->active))),
    };
}
