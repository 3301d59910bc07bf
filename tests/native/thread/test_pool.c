// SPDX-License-Identifier: Apache-2.0
// The pool: every tile of every run once, results visible after the join, counters, scratch, kinds, lifetime.
#include "thread/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

static sp_pool *make(uint32_t cores, uint32_t sme) {
    sp_pool_config config = sp_pool_config_default();
    config.cores = cores;
    config.sme = sme;
    config.counters = 3;
    sp_pool *pool = NULL;
    SP_CHECK_INT(sp_pool_create(&pool, &config), SP_OK);
    return pool;
}

// Plain memory, no atomics: the join has to make what the workers wrote visible.
typedef struct job {
    uint32_t *marks;
    uint32_t value;
} job;

static void mark(void *ctx, uint32_t begin, uint32_t end, const sp_worker *self) {
    job *j = ctx;
    for (uint32_t tile = begin; tile < end; tile++) j->marks[tile] += j->value;
    self->counts[1] += end - begin;
}

SP_TEST(pool_runs_every_tile_once) {
    const uint32_t sizes[] = {0, 1, 2, 3, 17, 1000, 70000};
    uint32_t *marks = calloc(70000, sizeof *marks);
    for (uint32_t workers = 1; workers <= 8; workers++) {
        sp_pool *pool = make(workers, 0);
        SP_REQUIRE(pool != NULL);
        SP_CHECK_INT(sp_pool_workers(pool), workers);
        uint64_t expected = 0, counts[3];
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            sp_test_label("workers=%u tiles=%u", workers, sizes[i]);
            memset(marks, 0, 70000 * sizeof *marks);
            job j = {marks, 5};
            sp_pool_begin(pool, 0);
            sp_pool_run(pool, &(sp_queue_spec){.tiles = sizes[i]}, mark, &j);
            sp_pool_end(pool);
            for (uint32_t tile = 0; tile < 70000; tile++) SP_CHECK_INT(marks[tile], tile < sizes[i] ? 5 : 0);
            expected += sizes[i];
        }
        sp_pool_counts(pool, counts);
        SP_CHECK_INT(counts[0], 0);
        SP_CHECK_INT(counts[1], expected);
        SP_CHECK_INT(counts[2], 0);
        sp_pool_destroy(pool);
    }
    free(marks);
}

SP_TEST(pool_hundred_thousand_runs) {
    enum { TILES = 5, RUNS = 100000 };
    sp_pool *pool = make(2, 0);
    SP_REQUIRE(pool != NULL);
    uint32_t marks[TILES] = {0};
    uint32_t expected = 0;
    for (uint32_t run = 0; run < RUNS; run++) {
        if (run % 200 == 0) sp_pool_begin(pool, 0);
        job j = {marks, run % 7};
        expected += run % 7;
        sp_pool_run(pool, &(sp_queue_spec){.tiles = TILES}, mark, &j);
        if (run % 200 == 199) sp_pool_end(pool);
    }
    for (int tile = 0; tile < TILES; tile++) SP_CHECK_INT(marks[tile], expected);
    sp_pool_destroy(pool);
}

// Workers park between passes at once, wake late, and find runs that are over, whose memory is freed.
SP_TEST(pool_late_workers_touch_nothing_of_old_runs) {
    sp_pool_config config = sp_pool_config_default();
    config.cores = 4;
    config.spin_ns = config.yield_ns = 0;
    config.counters = 3;
    sp_pool *pool;
    SP_REQUIRE(sp_pool_create(&pool, &config) == SP_OK);
    uint64_t random = 1;
    for (int pass = 0; pass < 500; pass++) {
        sp_pool_begin(pool, 0);
        for (int run = 0; run < 4; run++) {
            uint32_t tiles = 2 + (uint32_t)(sp_test_random(&random) % 6);
            job *j = malloc(sizeof *j);
            *j = (job){calloc(tiles, sizeof(uint32_t)), 1};
            sp_pool_run(pool, &(sp_queue_spec){.tiles = tiles}, mark, j);
            for (uint32_t tile = 0; tile < tiles; tile++) SP_CHECK_INT(j->marks[tile], 1);
            free(j->marks);
            free(j);
        }
        sp_pool_end(pool);
        if (sp_test_random(&random) % 4 == 0) usleep(200);
    }
    sp_pool_destroy(pool);
}

typedef struct scratch_job {
    void *seen[8];
} scratch_job;

static void note_scratch(void *ctx, uint32_t begin, uint32_t end, const sp_worker *self) {
    scratch_job *j = ctx;
    (void)begin, (void)end;
    memset(self->scratch, (int)self->index, self->scratch_bytes);
    j->seen[self->index] = self->scratch;
    usleep(100);  // lets the others take tiles
}

SP_TEST(pool_scratch_is_each_workers_own) {
    sp_pool *pool = make(3, 1);
    SP_REQUIRE(pool != NULL);
    for (size_t bytes = 1000; bytes <= 100000; bytes *= 10) {
        scratch_job j = {{0}};
        SP_CHECK_INT(sp_pool_reserve_scratch(pool, bytes), SP_OK);
        sp_pool_begin(pool, 3);
        sp_pool_run(pool, &(sp_queue_spec){.tiles = 40, .kinds = 3, .most = {1, 1}}, note_scratch, &j);
        sp_pool_end(pool);
        for (int a = 0; a < 4; a++) {
            SP_CHECK_INT((uintptr_t)j.seen[a] % SP_LINE, 0);
            for (int b = 0; b < a; b++) SP_CHECK(j.seen[a] == NULL || j.seen[a] != j.seen[b]);
        }
    }
    sp_memory_fail_from(2);
    SP_CHECK_INT(sp_pool_reserve_scratch(pool, 200000), SP_ERR_MEMORY);
    sp_memory_fail_from(0);
    SP_CHECK_INT(sp_pool_reserve_scratch(pool, 200000), SP_OK);
    sp_pool_destroy(pool);
}

static void count_kinds(void *ctx, uint32_t begin, uint32_t end, const sp_worker *self) {
    _Atomic uint32_t *kinds = ctx;
    atomic_fetch_add(&kinds[self->kind], end - begin);
}

SP_TEST(pool_kinds_take_part_as_asked) {
    static const struct {
        uint32_t sme, pass, run;
        bool core, matrix;  // who may have computed
    } cases[] = {
        {1, 3, 3, true, true},  {1, 3, 1, true, false}, {1, 3, 2, false, true}, {1, 0, 2, true, false},
        {1, 0, 3, true, false}, {0, 3, 2, true, false}, {0, 3, 3, true, false}, {2, 2, 2, false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sp_test_label("case %zu", i);
        sp_pool *pool = make(2, cases[i].sme);
        SP_REQUIRE(pool != NULL);
        SP_CHECK_INT(sp_pool_workers(pool), 2 + cases[i].sme);
        for (int pass = 0; pass < 20; pass++) {
            _Atomic uint32_t kinds[SP_KIND_COUNT] = {0};
            sp_pool_begin(pool, cases[i].pass);
            sp_pool_run(pool, &(sp_queue_spec){.tiles = 100, .kinds = cases[i].run}, count_kinds, kinds);
            sp_pool_end(pool);
            SP_CHECK_INT(kinds[SP_KIND_CORE] + kinds[SP_KIND_SME], 100);
            SP_CHECK(cases[i].core || kinds[SP_KIND_CORE] == 0);
            SP_CHECK(cases[i].matrix || kinds[SP_KIND_SME] == 0);
        }
        sp_pool_destroy(pool);
    }
}

SP_TEST(pool_refuses_what_it_cannot_have) {
    sp_pool *pool;
    sp_pool_config config = sp_pool_config_default();
    config.cores = SP_POOL_WORKERS_MAX + 1;
    SP_CHECK_INT(sp_pool_create(&pool, &config), SP_ERR_ARGUMENT);
    config.cores = 2;
    config.sme = UINT32_MAX;
    SP_CHECK_INT(sp_pool_create(&pool, &config), SP_ERR_ARGUMENT);
    config.sme = 1;
    config.counters = 4;
    for (long nth = 1; nth <= 4; nth++) {  // the pool, and each worker's counters
        sp_memory_fail_from(nth);
        SP_CHECK_INT(sp_pool_create(&pool, &config), SP_ERR_MEMORY);
        SP_CHECK(pool == NULL);
    }
    sp_memory_fail_from(0);
    sp_pool_destroy(NULL);
}

SP_TEST(pool_ends_in_any_state) {
    sp_pool *fresh = make(4, 1);
    sp_pool_destroy(fresh);  // threads that have hardly started
    sp_pool *parked = make(4, 1);
    usleep(20000);
    sp_pool_destroy(parked);
    sp_pool *stopped = make(4, 1);
    uint32_t marks[9] = {0};
    job j = {marks, 1};
    for (int turn = 0; turn < 2; turn++) {
        sp_pool_begin(stopped, 3);
        sp_pool_run(stopped, &(sp_queue_spec){.tiles = 9, .kinds = 3}, mark, &j);
        sp_pool_end(stopped);
        sp_pool_stop(stopped);
        sp_pool_stop(stopped);
    }
    sp_placement placement;
    sp_pool_placement(stopped, 1, &placement);
    SP_CHECK(!placement.active);
    for (int tile = 0; tile < 9; tile++) SP_CHECK_INT(marks[tile], 2);
    sp_pool_destroy(stopped);
}

enum { PASSES = 300 };

static void *make_passes(void *pool) {
    uint32_t marks[16] = {0};
    job j = {marks, 1};
    for (int pass = 0; pass < PASSES; pass++) {
        sp_pool_begin(pool, 0);
        for (int run = 0; run < 10; run++) sp_pool_run(pool, &(sp_queue_spec){.tiles = 16}, mark, &j);
        sp_pool_end(pool);
    }
    for (int tile = 0; tile < 16; tile++) SP_CHECK_INT(marks[tile], 10 * PASSES);
    return NULL;
}

// Passes of several threads exclude each other; one stops the pool in the middle, and the rest still come out right.
SP_TEST(pool_is_shared_and_stopped_by_threads) {
    sp_pool *pool = make(3, 0);
    SP_REQUIRE(pool != NULL);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) SP_REQUIRE(pthread_create(&threads[i], NULL, make_passes, pool) == 0);
    usleep(2000);
    sp_pool_stop(pool);
    uint64_t counts[3];
    sp_pool_counts(pool, counts);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    sp_pool_counts(pool, counts);
    SP_CHECK_INT(counts[1], 3 * 16 * 10 * PASSES);
    sp_pool_destroy(pool);
}
