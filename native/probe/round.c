// SPDX-License-Identifier: Apache-2.0
// A round: threads that start together, and the rate of all of them.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "probe/probe.h"

typedef struct gate {
    atomic_uint waiting;
    atomic_bool open, cancelled;
} gate;

typedef struct runner {
    pthread_t thread;
    gate *gate;
    sp_probe_fn fn;
    void *state;
    unsigned index;
    uint64_t work, start, end;
} runner;

static void *run(void *argument) {
    runner *self = argument;
    atomic_fetch_add(&self->gate->waiting, 1);
    while (!atomic_load_explicit(&self->gate->open, memory_order_acquire)) sched_yield();
    if (atomic_load(&self->gate->cancelled)) return NULL;
    self->start = sp_clock_ns();
    self->work = self->fn(self->state, self->index);
    self->end = sp_clock_ns();
    return NULL;
}

sp_status sp_probe_round(unsigned threads, sp_probe_fn fn, void *state, double *work_per_second) {
    if (threads < 1 || threads > SP_PROBE_THREADS) return SP_ERR_ARGUMENT;
    gate gate = {0};
    runner runners[SP_PROBE_THREADS];
    unsigned started = 0;
    for (; started < threads; started++) {
        runners[started] = (runner){.gate = &gate, .fn = fn, .state = state, .index = started};
        if (pthread_create(&runners[started].thread, NULL, run, &runners[started]) != 0) {
            atomic_store(&gate.cancelled, true);
            break;
        }
    }
    while (atomic_load(&gate.waiting) < started) sched_yield();
    atomic_store_explicit(&gate.open, true, memory_order_release);
    uint64_t work = 0, first = UINT64_MAX, last = 0;
    for (unsigned i = 0; i < started; i++) {
        pthread_join(runners[i].thread, NULL);
        work += runners[i].work;
        first = runners[i].start < first ? runners[i].start : first;
        last = runners[i].end > last ? runners[i].end : last;
    }
    if (started < threads) return SP_ERR_SYSTEM;
    *work_per_second = (double)work * 1e9 / (double)(last > first ? last - first : 1);
    return SP_OK;
}
