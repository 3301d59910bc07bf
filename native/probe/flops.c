// SPDX-License-Identifier: Apache-2.0
// Integer peak: picks the tier's loop, finds out how many rounds fill a slice of time, takes the best of a few slices.
#include "base/clock.h"
#include "probe/probe.h"

enum { SLICES = 5 };
#define SLICE_NS 30000000u  // long enough for clocks to rise, short enough to fall between two interruptions

typedef struct slice {
    sp_probe_loop loop;
    uint64_t rounds;
} slice;

sp_probe_loop sp_probe_int8_loop(sp_tier tier) {
    switch (tier) {
#ifdef SP_BUILT_NEON
        case SP_TIER_NEON_I8MM: return sp_probe_int8_neon_i8mm;
        case SP_TIER_NEON_DOTPROD: return sp_probe_int8_neon_dotprod;
        case SP_TIER_NEON: return sp_probe_int8_neon;
#endif
#ifdef SP_BUILT_AVX512
        case SP_TIER_AVX512: return sp_probe_int8_avx512;
#endif
#ifdef SP_BUILT_AVX2
        case SP_TIER_AVX2: return sp_probe_int8_avx2;
#endif
        case SP_TIER_REF: return sp_probe_int8_ref;
        default: return NULL;
    }
}

static uint64_t run_slice(void *state, unsigned index) {
    (void)index;
    const slice *self = state;
    return self->loop(self->rounds);
}

static uint64_t rounds_per_slice(sp_probe_loop loop) {
    for (uint64_t rounds = 1024;; rounds *= 2) {
        uint64_t start = sp_clock_ns();
        loop(rounds);
        if (sp_clock_ns() - start >= SLICE_NS / 2) return rounds * 2;
    }
}

sp_status sp_probe_int8_peak(unsigned threads, sp_tier tier, double *ops_per_second) {
    sp_probe_loop loop = sp_probe_int8_loop(tier);
    if (loop == NULL) return SP_ERR_UNSUPPORTED;
    slice state = {loop, rounds_per_slice(loop)};
    double best = 0.0;
    for (int i = 0; i < SLICES; i++) {
        double rate = 0.0;
        sp_status status = sp_probe_round(threads, run_slice, &state, &rate);
        if (status != SP_OK) return status;
        best = rate > best ? rate : best;
    }
    *ops_per_second = best;
    return SP_OK;
}
