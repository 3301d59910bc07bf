// SPDX-License-Identifier: Apache-2.0
// The pool and the process around it: fork, few CPUs, CPUs taken away, a busy neighbour. Each test is a child
// process with a deadline, so that a hang is a failure, and the affinity of this process stays as it is.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "thread/pool.h"

enum { TILES = 12, SECONDS = 60 };

#if defined(__SANITIZE_THREAD__)
#define SANITIZED_THREADS 1  // its runtime allows no new threads in the child of a threaded process
#else
#define SANITIZED_THREADS 0
#endif

// The exit status of `body` in a child; -1 when it hung or crashed.
static int in_child(bool (*body)(void)) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS);
        _exit(body() ? 0 : 1);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

static sp_pool *make(uint32_t cores, bool pin) {
    sp_pool_config config = sp_pool_config_default();
    config.cores = cores;
    config.pin = pin;
    sp_pool *pool = NULL;
    return sp_pool_create(&pool, &config) == SP_OK ? pool : NULL;
}

static void add_one(void *ctx, uint32_t begin, uint32_t end, const sp_worker *self) {
    uint32_t *marks = ctx;
    (void)self;
    for (uint32_t tile = begin; tile < end; tile++) marks[tile]++;
}

static bool passes(sp_pool *pool, uint32_t count, uint32_t runs) {
    uint32_t marks[TILES] = {0};
    for (uint32_t pass = 0; pass < count; pass++) {
        sp_pool_begin(pool, 0);
        for (uint32_t run = 0; run < runs; run++) sp_pool_run(pool, &(sp_queue_spec){.tiles = TILES}, add_one, marks);
        sp_pool_end(pool);
    }
    for (uint32_t tile = 0; tile < TILES; tile++)
        if (marks[tile] != count * runs) return false;
    return true;
}

// ---- fork

static sp_pool *inherited;

static bool use_inherited(void) {
    bool right = passes(inherited, 20, 20);
    sp_placement placement;
    sp_pool_placement(inherited, 1, &placement);
    right = right && !placement.active;
    sp_pool_stop(inherited);
    sp_pool_destroy(inherited);
    return right;
}

SP_TEST(process_forked_child_computes_alone) {
    inherited = make(3, true);
    SP_REQUIRE(inherited != NULL);
    SP_CHECK(passes(inherited, 5, 5));
    SP_CHECK_INT(in_child(use_inherited), 0);  // workers spinning
    usleep(20000);
    SP_CHECK_INT(in_child(use_inherited), 0);  // workers parked
    SP_CHECK(passes(inherited, 5, 5));         // the parent's pool is as it was
    sp_pool_destroy(inherited);
}

static atomic_bool enough;

static void *passes_until_enough(void *pool) {
    bool right = true;
    while (!atomic_load(&enough)) right = passes(pool, 1, 50) && right;
    return right ? pool : NULL;
}

// The child's copy is caught in the middle of a pass, locks held.
SP_TEST(process_fork_in_the_middle_of_a_pass) {
    inherited = make(3, true);
    SP_REQUIRE(inherited != NULL);
    pthread_t busy;
    atomic_store(&enough, false);
    SP_REQUIRE(pthread_create(&busy, NULL, passes_until_enough, inherited) == 0);
    for (int i = 0; i < 10; i++) SP_CHECK_INT(in_child(use_inherited), 0);
    atomic_store(&enough, true);
    void *right;
    pthread_join(busy, &right);
    SP_CHECK(right != NULL);
    sp_pool_destroy(inherited);
}

#ifdef __linux__
// ---- affinity

static bool restrict_to(uint32_t cpus) {
    cpu_set_t have, want;
    CPU_ZERO(&want);
    if (sched_getaffinity(0, sizeof have, &have) != 0) return false;
    for (int cpu = 0; cpu < CPU_SETSIZE && cpus > 0; cpu++) {
        if (CPU_ISSET(cpu, &have)) {
            CPU_SET(cpu, &want);
            cpus--;
        }
    }
    return sched_setaffinity(0, sizeof want, &want) == 0;
}

static bool more_workers_than_cpus(void) {
    if (!restrict_to(1)) return false;
    sp_pool *by_default = make(0, true);
    sp_pool *many = make(4, true);
    if (by_default == NULL || many == NULL) return false;
    sp_placement placement;
    sp_pool_placement(many, 3, &placement);
    bool right = sp_pool_workers(by_default) == 1 && placement.cpu < 0;  // no core of its own: not pinned
    right = right && passes(by_default, 100, 20) && passes(many, 100, 20);
    sp_pool_destroy(by_default);
    sp_pool_destroy(many);
    return right;
}

SP_TEST(process_with_one_cpu) {
    if (SANITIZED_THREADS) {
        sp_test_skip("ThreadSanitizer");
        return;
    }
    SP_CHECK_INT(in_child(more_workers_than_cpus), 0);
}

static bool loses_cpus(void) {
    cpu_set_t all;
    sp_placement placement;
    if (sched_getaffinity(0, sizeof all, &all) != 0) return false;
    sp_pool *pool = make(2, true);
    if (pool == NULL || !passes(pool, 20, 20) || !restrict_to(1) || !passes(pool, 20, 20)) return false;
    sp_pool_placement(pool, 1, &placement);
    bool right = !placement.active;
    right = right && sched_setaffinity(0, sizeof all, &all) == 0 && passes(pool, 20, 20);
    sp_pool_placement(pool, 1, &placement);
    right = right && placement.active;
    sp_pool_destroy(pool);
    pool = make(2, true);
    right = right && restrict_to(1) && passes(pool, 1, 1);
    sp_pool_destroy(pool);  // with a benched worker
    return right;
}

SP_TEST(process_loses_and_regains_cpus) {
    if (SANITIZED_THREADS || sp_cpus_allowed() < 2) {
        sp_test_skip("ThreadSanitizer, or a single CPU");
        return;
    }
    SP_CHECK_INT(in_child(loses_cpus), 0);
}

static bool waits_for_start(sp_pool *pool, uint32_t index, sp_placement *placement) {
    for (int i = 0; i < 5000; i++) {
        sp_pool_placement(pool, index, placement);
        if (placement->started) return true;
        usleep(1000);
    }
    return false;
}

SP_TEST(process_workers_are_pinned_inside_the_affinity) {
    sp_topology machine;
    sp_topology_detect(&machine);
    sp_pool *pool = make(machine.allowed_count, true);
    SP_REQUIRE(pool != NULL);
    for (uint32_t i = 0; i < machine.allowed_count; i++) {
        sp_placement placement;
        SP_CHECK(waits_for_start(pool, i, &placement));
        SP_CHECK_INT(placement.cpu, i == 0 ? -1 : machine.allowed[i].cpu);
        SP_CHECK(i == 0 ? placement.pin == SP_PIN_NONE : placement.pin != SP_PIN_NONE);
    }
    sp_pool_destroy(pool);
    pool = make(machine.allowed_count, false);
    sp_placement placement;
    sp_pool_placement(pool, machine.allowed_count - 1, &placement);
    SP_CHECK_INT(placement.cpu, -1);
    sp_pool_destroy(pool);
}
#endif

// ---- neighbours

static atomic_bool quiet;

static void *be_busy(void *unused) {
    while (!atomic_load_explicit(&quiet, memory_order_relaxed)) {
    }
    return unused;
}

// As many busy threads as CPUs: the workers are off their cores half of the time. Passes must go on; how fast they
// do is for the benchmark.
static bool beside_busy_neighbours(void) {
    pthread_t neighbour[2];
    sp_pool *pool = make(2, true);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&neighbour[i], NULL, be_busy, NULL) != 0) return false;
    bool right = pool != NULL && passes(pool, 50, 20);
    atomic_store(&quiet, true);
    for (int i = 0; i < 2; i++) pthread_join(neighbour[i], NULL);
    sp_pool_destroy(pool);
    return right;
}

SP_TEST(process_beside_busy_neighbours) {
    if (SANITIZED_THREADS) {
        sp_test_skip("ThreadSanitizer");
        return;
    }
    SP_CHECK_INT(in_child(beside_busy_neighbours), 0);
}
