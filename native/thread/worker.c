// SPDX-License-Identifier: Apache-2.0
// A worker's life: wait for tiles, take and compute them, say how many it finished.
#include "thread/worker.h"

#include <fenv.h>
#include <sched.h>
#include <stdio.h>

#include "base/clock.h"
#include "cpu/vector.h"

enum { TURNS_PER_LOOK = 64 };  // pauses between two looks at the clock

static void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");  // `yield` does nothing on most cores; this holds the pipeline for a while
#endif
}

uint64_t sp_patience_turn(sp_patience *patience, uint64_t spin_ns) {
    if (patience->waited < spin_ns) {
        pause_briefly();
        if (++patience->turns % TURNS_PER_LOOK != 0) return patience->waited;
    } else {
        sched_yield();
    }
    uint64_t now = sp_clock_ns();
    if (patience->start == 0) patience->start = now;
    return patience->waited = now - patience->start;
}

static bool benched(sp_thread *me) {
    return me->self.kind == SP_KIND_CORE &&
           me->self.index >= atomic_load_explicit(&me->pool->active, memory_order_relaxed);
}

static bool hot(sp_thread *me) {
    return atomic_load_explicit(&me->pool->hot, memory_order_relaxed) >> me->self.kind & 1;
}

static bool stopping(sp_thread *me) { return atomic_load_explicit(&me->pool->stop, memory_order_relaxed); }

// Sleeps until a pass needs this worker, or the pool stops.
static void park(sp_thread *me) {
    sp_pool *pool = me->pool;
    pthread_mutex_lock(&pool->lot);
    while (benched(me) && !stopping(me)) pthread_cond_wait(&pool->bench, &pool->lot);
    pool->parked++;
    while (!hot(me) && !stopping(me)) pthread_cond_wait(&pool->wake, &pool->lot);
    pool->parked--;
    pthread_mutex_unlock(&pool->lot);
}

// Waits until there may be tiles; false when the pool stops.
static bool wait_for_tiles(sp_thread *me) {
    sp_pool *pool = me->pool;
    sp_patience patience = {0};
    while (benched(me) || !sp_queue_ready(&pool->queue, me->self.kind)) {
        if (stopping(me)) return false;
        uint64_t spin_ns = atomic_load_explicit(&pool->spin_ns, memory_order_relaxed);
        uint64_t waited = sp_patience_turn(&patience, spin_ns);
        if (benched(me) || (!hot(me) && waited >= spin_ns + pool->config.yield_ns)) {
            park(me);
            patience = (sp_patience){0};
        }
    }
    return true;
}

void *sp_thread_main(void *thread) {
    sp_thread *me = thread;
    sp_pool *pool = me->pool;
    char name[16];
    snprintf(name, sizeof name, "smepilot-%u", (unsigned)me->self.index);
    sp_thread_describe(name);
    if (sp_cpuset_count(&me->cpus) > 0) atomic_store(&me->pin, sp_thread_pin(&me->cpus));
    if (me->streams) {
        sp_svl_raise();
        atomic_store(&me->svl, sp_svl());
    }
    fesetenv(FE_DFL_ENV);  // a thread inherits its maker's rounding and flush-to-zero
    atomic_store(&me->started, true);
    while (wait_for_tiles(me)) {
        sp_grab grab;
        uint32_t finished = 0;
        while (sp_queue_take(&pool->queue, me->self.kind, &grab)) {
            grab.fn(grab.ctx, grab.begin, grab.end, &me->self);
            finished += grab.end - grab.begin;
        }
        // The run cannot end, and the next not begin, before this: `finished` belongs to one run.
        if (finished > 0) atomic_fetch_add_explicit(&pool->done, finished, memory_order_release);
    }
    return NULL;
}
