// SPDX-License-Identifier: Apache-2.0
// Probes: what they refuse, and that their figures are possible at all.
#include "probe/probe.h"

#include <stdatomic.h>

#include "base/memory.h"
#include "test.h"

static uint64_t count_thread(void *state, unsigned index) {
    atomic_fetch_or((atomic_uint *)state, 1u << index);
    return 1;
}

SP_TEST(probe_round_runs_every_thread_once) {
    for (unsigned threads = 1; threads <= 5; threads++) {
        sp_test_label("threads=%u", threads);
        atomic_uint seen = 0;
        double rate = 0.0;
        SP_CHECK_INT(sp_probe_round(threads, count_thread, &seen, &rate), SP_OK);
        SP_CHECK_INT(atomic_load(&seen), (1u << threads) - 1);
        SP_CHECK(rate > 0.0);
    }
}

SP_TEST(probe_refuses_what_it_cannot_measure) {
    double rate = 0.0;
    SP_CHECK_INT(sp_probe_round(0, count_thread, NULL, &rate), SP_ERR_ARGUMENT);
    SP_CHECK_INT(sp_probe_round(SP_PROBE_THREADS + 1, count_thread, NULL, &rate), SP_ERR_ARGUMENT);
    SP_CHECK_INT(sp_probe_read_bandwidth(0, 1 << 20, &rate), SP_ERR_ARGUMENT);
    SP_CHECK_INT(sp_probe_read_bandwidth(4, 32, &rate), SP_ERR_ARGUMENT);
    SP_CHECK_INT(sp_probe_int8_peak(1, SP_TIER_COUNT, &rate), SP_ERR_UNSUPPORTED);
}

SP_TEST(probe_bandwidth_reports_short_memory) {
    double rate = 0.0;
    sp_memory_fail_from(1);
    SP_CHECK_INT(sp_probe_read_bandwidth(1, 1 << 20, &rate), SP_ERR_MEMORY);
    sp_memory_fail_from(2);
    SP_CHECK_INT(sp_probe_read_bandwidth(1, 1 << 20, &rate), SP_ERR_MEMORY);
    sp_memory_fail_from(0);
}

SP_TEST(probe_figures_are_possible) {
    double bandwidth = 0.0, peak = 0.0;
    SP_CHECK_INT(sp_probe_read_bandwidth(2, 32 << 20, &bandwidth), SP_OK);
    SP_CHECK(bandwidth > 1e8 && bandwidth < 1e13);
    sp_cpu cpu;
    sp_cpu_detect(&cpu);
    const uint32_t usable = sp_kernel_tiers_supported(&cpu) & sp_kernel_tiers_built() & ~SP_TIERS_SME;
    for (uint32_t tier = 0; tier < SP_TIER_COUNT; tier++) {
        if (!(usable >> tier & 1)) continue;
        sp_test_label("%s", sp_tier_name((sp_tier)tier));
        SP_CHECK_INT(sp_probe_int8_peak(1, (sp_tier)tier, &peak), SP_OK);
        SP_CHECK(peak > 1e8 && peak < 1e15);
    }
}
