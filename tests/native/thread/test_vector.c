// SPDX-License-Identifier: Apache-2.0
// Trap 4 in the pool: workers that run matrix kernels raise their vector length, the caller gets its own back.
#include "cpu/vector.h"

#include "test.h"
#include "thread/pool.h"

enum { TILES = 64 };

typedef struct lengths {
    _Atomic uint32_t core, sme;  // least seen in a tile, by kind of worker
} lengths;

static void look(void *ctx, uint32_t begin, uint32_t end, const sp_worker *self) {
    lengths *seen = ctx;
    (void)begin, (void)end;
    if (self->kind == SP_KIND_SME) seen->sme = sp_svl();
    else if (self->index == 0) seen->core = sp_svl();
}

static uint32_t highest(void) {
    uint32_t before = sp_svl_raise(), raised = sp_svl();
    sp_svl_restore(before);
    return raised;
}

static sp_pool *make(bool stream) {
    sp_pool_config config = sp_pool_config_default();
    config.cores = 2;
    config.sme = 1;
    config.stream = stream;
    sp_pool *pool = NULL;
    return sp_pool_create(&pool, &config) == SP_OK ? pool : NULL;
}

// Passes until the SME worker has taken a tile: on a busy machine it may come late to the first ones.
static bool run_until_all_have_looked(sp_pool *pool, lengths *seen) {
    for (int pass = 0; pass < 2000; pass++) {
        const sp_queue_spec spec = {.tiles = TILES, .kinds = 3, .most = {1, 1}};
        sp_pool_begin(pool, 3);
        for (int run = 0; run < 50; run++) sp_pool_run(pool, &spec, look, seen);
        sp_pool_end(pool);
        sp_placement placement;
        sp_pool_placement(pool, 2, &placement);
        if (placement.started && seen->sme == placement.svl) return true;
    }
    return false;
}

SP_TEST(trap4_sme_workers_raise_their_vector_length) {
    sp_pool *pool = make(false);
    lengths seen = {1, 1};
    uint32_t before = sp_svl();
    SP_REQUIRE(pool != NULL);
    SP_CHECK(run_until_all_have_looked(pool, &seen));
    sp_placement placement[3];
    for (uint32_t i = 0; i < 3; i++) sp_pool_placement(pool, i, &placement[i]);
    SP_CHECK_INT(placement[2].svl, highest());
    SP_CHECK_INT(seen.sme, highest());
    sp_topology machine;
    sp_topology_detect(&machine);
    if (!machine.sme_private) {
        SP_CHECK(placement[0].svl == 0 && placement[1].svl == 0);
        SP_CHECK_INT(seen.core, before);  // the caller runs no matrix kernels: left alone
    }
    SP_CHECK_INT(sp_svl(), before);
    sp_pool_destroy(pool);
}

SP_TEST(trap4_the_callers_vector_length_is_put_back) {
    sp_pool *pool = make(true);
    lengths seen = {1, 1};
    uint32_t before = sp_svl();
    SP_REQUIRE(pool != NULL);
    SP_CHECK(run_until_all_have_looked(pool, &seen));
    sp_placement caller, other;
    sp_pool_placement(pool, 0, &caller);
    sp_pool_placement(pool, 1, &other);
    SP_CHECK_INT(seen.core, highest());
    SP_CHECK_INT(caller.svl, highest());
    SP_CHECK(!other.started || other.svl == highest());
    SP_CHECK_INT(sp_svl(), before);
    sp_pool_destroy(pool);
}
