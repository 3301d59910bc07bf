// SPDX-License-Identifier: Apache-2.0
// The tile queue without a pool: every tile once, whoever takes it, in this run and no other.
#include "thread/queue.h"

#include <pthread.h>
#include <sched.h>

#include "test.h"

static sp_queue queue;  // each test leaves it exhausted

static void no_tile(void *ctx, uint32_t begin, uint32_t end, const sp_worker *self) {
    (void)ctx, (void)begin, (void)end, (void)self;
}

SP_TEST(queue_kinds_walk_towards_each_other) {
    sp_grab grab;
    const sp_queue_spec spec = {.tiles = 100, .kinds = 3, .least = {1, 8}, .most = {4, 16}};
    sp_queue_open(&queue, &spec, no_tile, &queue, 2, SP_KIND_CORE, &grab);
    uint32_t front = 0, back = 100;
    bool core = true, more = true;
    for (; more; core = !core) {
        uint32_t size = grab.end - grab.begin;
        if (core) {
            SP_CHECK_INT(grab.end, back);
            SP_CHECK(size >= 1 && size <= 4);
            back = grab.begin;
        } else {
            SP_CHECK_INT(grab.begin, front);
            SP_CHECK((size >= 8 || grab.end == back) && size <= 16);
            front = grab.end;
        }
        SP_CHECK(grab.fn == no_tile && grab.ctx == &queue);
        more = sp_queue_take(&queue, core ? SP_KIND_SME : SP_KIND_CORE, &grab);
    }
    SP_CHECK_INT(front, back);
    SP_CHECK(!sp_queue_ready(&queue, SP_KIND_CORE));
}

SP_TEST(queue_kinds_that_are_left_out_find_nothing) {
    sp_grab grab;
    sp_queue_open(&queue, &(sp_queue_spec){.tiles = 10}, no_tile, NULL, 1, SP_KIND_CORE, &grab);
    SP_CHECK(sp_queue_ready(&queue, SP_KIND_CORE) && !sp_queue_ready(&queue, SP_KIND_SME));
    SP_CHECK(!sp_queue_take(&queue, SP_KIND_SME, &grab));
    while (sp_queue_take(&queue, SP_KIND_CORE, &grab)) {
    }
    const sp_queue_spec sme = {.tiles = 10, .kinds = 1u << SP_KIND_SME};
    sp_queue_open(&queue, &sme, no_tile, NULL, 1, SP_KIND_CORE, &grab);
    SP_CHECK_INT(grab.begin, grab.end);
    SP_CHECK(!sp_queue_take(&queue, SP_KIND_CORE, &grab));
    while (sp_queue_take(&queue, SP_KIND_SME, &grab)) {
    }
}

// The word counts in units when tiles outnumber its 16 bits.
SP_TEST(queue_covers_any_number_of_tiles) {
    const uint32_t sizes[] = {0, 1, 2, 65534, 65535, 65536, 65537, 131070, 131071, 16777219, 4294967294u, 4294967295u};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (uint32_t takers = 1; takers <= 300; takers += 23) {
            sp_grab grab;
            const sp_queue_spec spec = {.tiles = sizes[i], .kinds = 3, .least = {0, 3}, .most = {0, 1000}};
            uint32_t front = 0, back = sizes[i], turn = 0;
            sp_test_label("tiles=%u takers=%u", sizes[i], takers);
            sp_queue_open(&queue, &spec, no_tile, NULL, takers, SP_KIND_CORE, &grab);
            SP_CHECK_INT(grab.end, back);
            back = grab.begin;
            for (;; turn++) {
                sp_kind kind = turn % 2 ? SP_KIND_CORE : SP_KIND_SME;
                if (!sp_queue_take(&queue, kind, &grab)) break;
                SP_CHECK(grab.begin < grab.end);
                SP_CHECK_INT(kind == SP_KIND_CORE ? grab.end : grab.begin, kind == SP_KIND_CORE ? back : front);
                back = kind == SP_KIND_CORE ? grab.begin : back;
                front = kind == SP_KIND_SME ? grab.end : front;
            }
            SP_CHECK_INT(front, back);
        }
    }
}

enum { THREADS = 6, RUNS = 20000, TILES = 7 };

// One run's tally; a claim that mixed two runs would count in the wrong one.
typedef struct tally {
    _Atomic uint32_t taken[TILES];
    _Atomic uint32_t finished;
} tally;

static tally tallies[RUNS];
static atomic_bool over;

static uint32_t count_in(const sp_grab *grab) {
    tally *run = grab->ctx;
    for (uint32_t tile = grab->begin; tile < grab->end; tile++) atomic_fetch_add(&run->taken[tile], 1);
    return grab->end - grab->begin;
}

static void *take_until_over(void *kind) {
    while (!atomic_load(&over)) {
        sp_grab grab;
        if (sp_queue_take(&queue, *(sp_kind *)kind, &grab)) {
            tally *run = grab.ctx;
            atomic_fetch_add(&run->finished, count_in(&grab));
        } else {
            sched_yield();
        }
    }
    return NULL;
}

SP_TEST(queue_threads_take_every_tile_once) {
    pthread_t threads[THREADS];
    sp_kind kinds[THREADS];
    atomic_store(&over, false);
    for (int i = 0; i < THREADS; i++) {
        kinds[i] = i % 3 == 0 ? SP_KIND_SME : SP_KIND_CORE;
        SP_REQUIRE(pthread_create(&threads[i], NULL, take_until_over, &kinds[i]) == 0);
    }
    for (int r = 0; r < RUNS; r++) {
        sp_grab grab;
        const sp_queue_spec spec = {.tiles = TILES, .kinds = 1 + (uint32_t)r % 2 * 2};
        sp_queue_open(&queue, &spec, no_tile, &tallies[r], THREADS, SP_KIND_CORE, &grab);
        do atomic_fetch_add(&tallies[r].finished, count_in(&grab));
        while (sp_queue_take(&queue, SP_KIND_CORE, &grab));
        while (atomic_load(&tallies[r].finished) < TILES) sched_yield();
    }
    atomic_store(&over, true);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int r = 0; r < RUNS; r++) {
        sp_test_label("run=%d", r);
        for (int tile = 0; tile < TILES; tile++) SP_CHECK_INT(tallies[r].taken[tile], 1);
        SP_CHECK_INT(tallies[r].finished, TILES);
    }
}
