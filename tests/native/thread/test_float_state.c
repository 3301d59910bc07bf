// SPDX-License-Identifier: Apache-2.0
// Flush-to-zero and rounding of whoever calls do not reach the tiles, and are the caller's again after the pass.
#include <fenv.h>
#include <string.h>

#include "test.h"
#include "thread/pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
static unsigned long state(void) { return _mm_getcsr() & 0xffc0; }  // without the sticky exception flags
static void disturb(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }  // flush-to-zero, denormals-are-zero
#elif defined(__aarch64__)
static unsigned long state(void) {
    unsigned long value;
    __asm__ volatile("mrs %0, fpcr" : "=r"(value));
    return value;
}
static void disturb(void) { __asm__ volatile("msr fpcr, %0" : : "r"(state() | 1ul << 24)); }
#endif

#if defined(__x86_64__) || defined(__aarch64__)
typedef struct job {
    volatile float tiny;
    float results[64];
} job;

static void halve(void *ctx, uint32_t begin, uint32_t end, const sp_worker *self) {
    job *j = ctx;
    (void)self;
    for (uint32_t tile = begin; tile < end; tile++) j->results[tile] = j->tiny * 0.5f;
}

SP_TEST(pool_computes_in_the_default_float_state) {
    fenv_t before;
    fegetenv(&before);
    disturb();
    const unsigned long disturbed = state();
    for (uint32_t workers = 1; workers <= 3; workers++) {
        sp_pool_config config = sp_pool_config_default();
        config.cores = workers;
        sp_pool *pool = NULL;
        SP_REQUIRE(sp_pool_create(&pool, &config) == SP_OK);
        for (int round = 0; round < 100; round++) {
            job j = {.tiny = 0x1p-126f};
            sp_pool_begin(pool, 0);
            sp_pool_run(pool, &(sp_queue_spec){.tiles = 64}, halve, &j);
            sp_pool_end(pool);
            // As bits: a comparison of floats here would flush the denormals itself.
            static const uint8_t zero[sizeof(float)] = {0};
            for (int i = 0; i < 64; i++) SP_CHECK(memcmp(&j.results[i], zero, sizeof zero) != 0);
        }
        sp_test_label("workers=%u", workers);
        SP_CHECK_INT(state(), disturbed);
        sp_pool_destroy(pool);
    }
    fesetenv(&before);
}
#endif
