// SPDX-License-Identifier: Apache-2.0
// Sampling in C: the random generator's published answers, the full sort,
// probabilities, and one token for all tiers.
#include "op/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op/logprob.h"
#include "op/order.h"
#include "op/philox.h"
#include "test.h"

// From the kat_vectors file of Random123.
SP_TEST(sample_philox_known_answers) {
    static const struct {
        uint32_t counter[4];
        uint64_t key;
        uint32_t want[4];
    } known[] = {
        {{0, 0, 0, 0}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, ~(uint64_t)0, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         0x299f31d0a4093822u,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t counter[4];
        memcpy(counter, known[i].counter, sizeof counter);
        sp_philox(counter, known[i].key);
        SP_CHECK_BYTES(counter, known[i].want, sizeof counter);
    }
    for (uint64_t draw = 0; draw < 1000; draw++) {
        const double u = sp_philox_uniform(1, draw);
        SP_CHECK(u >= 0.0 && u < 1.0);
    }
}

enum { VOCAB = 5003 };

static float logits[VOCAB];

static void fill(uint64_t seed, float spread) {
    for (size_t i = 0; i < VOCAB; i++)
        logits[i] = spread * ((float)(sp_test_random(&seed) >> 40) * 0x1p-24f + (float)(sp_test_random(&seed) >> 63));
}

static int order(const void *a, const void *b) {
    const int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    if (logits[i] != logits[j]) return logits[i] > logits[j] ? -1 : 1;
    return i - j;
}

SP_TEST(sample_order_is_a_stable_descending_sort) {
    static int32_t want[VOCAB], ids[2 * VOCAB];
    static uint32_t keys[2 * VOCAB];
    for (int round = 0; round < 4; round++) {
        fill((uint64_t)round, 10.0f);
        for (size_t i = 0; i < VOCAB; i++) {
            if (round > 0) logits[i] -= 7.0f; // both signs
            if (round > 1) logits[i] = truncf(logits[i]) * -1.0f; // ties, zeros of both signs
            if (round > 2 && i % 5 == 0) logits[i] = i % 2 ? -INFINITY : INFINITY;
        }
        for (int32_t i = 0; i < VOCAB; i++) want[i] = i;
        qsort(want, VOCAB, sizeof *want, order);
        sp_test_label("round=%d", round);
        sp_order_descending(logits, VOCAB, ids, keys);
        SP_CHECK_BYTES(ids, want, sizeof want);
    }
}

static uint32_t usable_tiers(void) {
    sp_cpu cpu;
    sp_cpu_detect(&cpu);
    return sp_kernel_tiers_supported(&cpu) & sp_kernel_tiers_built();
}

SP_TEST(sample_logprob_is_the_log_of_softmax) {
    for (uint32_t tier = 0; tier < SP_TIER_COUNT; tier++) {
        sp_kernel_set kernels;
        if (!(usable_tiers() >> tier & 1)) continue;
        sp_kernel_select(&kernels, usable_tiers() & ((2u << tier) - 1));
        for (int round = 0; round < 3; round++) {
            fill(77 + (uint64_t)round, 3.0f * (float)(1 << 2 * round));
            logits[17] = -INFINITY;
            double peak = -INFINITY, total = 0.0;
            for (size_t i = 0; i < VOCAB; i++) peak = logits[i] > peak ? (double)logits[i] : peak;
            for (size_t i = 0; i < VOCAB; i++) total += exp((double)logits[i] - peak);
            for (size_t id = 0; id < VOCAB; id += 250) {
                double got;
                sp_test_label("%s round=%d id=%zu", sp_tier_name((sp_tier)tier), round, id);
                SP_CHECK_INT(sp_logprob(&kernels, logits, VOCAB, id, &got), SP_OK);
                SP_CHECK(fabs(got - ((double)logits[id] - peak - log(total))) < 1e-6);
            }
            double forbidden;
            SP_CHECK_INT(sp_logprob(&kernels, logits, VOCAB, 17, &forbidden), SP_OK);
            SP_CHECK(forbidden == -INFINITY);
            SP_CHECK_INT(sp_logprob(&kernels, logits, VOCAB, VOCAB, &forbidden), SP_ERR_ARGUMENT);
        }
    }
}

// Parameters that take each way through the sampler: kernel top-k, first look,
// full sort, no truncation.
SP_TEST(sample_tiers_draw_the_same_token) {
    static const sp_sample_args ways[] = {
        {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f},
        {.temperature = 0.8f, .top_p = 0.9f},
        {.temperature = 1.0f, .top_p = 1.0f},
        {.temperature = 50.0f, .top_p = 0.999f},
        {.temperature = 1.0f, .top_p = 1.0f, .top_k = 2000},
        {.temperature = 5.0f, .top_p = 1.0f, .min_p = 0.1f},
    };
    void *scratch = malloc(sp_sample_scratch_bytes(VOCAB));
    SP_REQUIRE(scratch != NULL);
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        for (uint64_t draw = 0; draw < 30; draw++) {
            int32_t first = -1;
            fill(draw, 4.0f);
            for (uint32_t tier = 0; tier < SP_TIER_COUNT; tier++) {
                if (!(usable_tiers() >> tier & 1)) continue;
                sp_kernel_set kernels;
                sp_kernel_select(&kernels, usable_tiers() & ((2u << tier) - 1));
                sp_sample_args args = ways[way];
                args.kernels = &kernels;
                args.logits = logits;
                args.vocab = VOCAB;
                args.repetition = 1.0f;
                args.seed = 5;
                args.draw = draw;
                args.scratch = scratch;
                int32_t token = -2;
                sp_test_label("way=%zu draw=%d %s", way, (int)draw, sp_tier_name((sp_tier)tier));
                SP_CHECK_INT(sp_sample(&args, &token), SP_OK);
                if (first < 0) first = token;
                SP_CHECK_INT(token, first);
            }
        }
    }
    free(scratch);
}

SP_TEST(sample_refuses_what_is_out_of_range) {
    float row[4] = {1.0f, 2.0f, 3.0f, 4.0f};
    uint8_t scratch[6 * 4 * 4] __attribute__((aligned(4)));
    const int32_t beyond = 4, negative = -1;
    sp_kernel_set kernels;
    sp_kernel_select(&kernels, 1u << SP_TIER_REF);
    const sp_sample_args good = {.kernels = &kernels,
                                 .logits = row,
                                 .vocab = 4,
                                 .temperature = 1.0f,
                                 .top_p = 1.0f,
                                 .repetition = 1.0f,
                                 .scratch = scratch};
    SP_REQUIRE(sp_sample_scratch_bytes(4) == sizeof scratch);
    sp_sample_args bad[9];
    for (int i = 0; i < 9; i++) bad[i] = good;
    bad[0].vocab = 0;
    bad[1].temperature = NAN;
    bad[2].temperature = -1.0f;
    bad[3].repetition = 0.0f;
    bad[4].top_p = NAN;
    bad[5].min_p = NAN;
    bad[6].recent = &beyond, bad[6].recent_count = 1;
    bad[7].bias_ids = &negative, bad[7].bias_values = row, bad[7].bias_count = 1;
    bad[8].answer_count = 1;
    for (int i = 0; i < 9; i++) {
        int32_t token = -7;
        sp_test_label("bad %d", i);
        SP_CHECK_INT(sp_sample(&bad[i], &token), SP_ERR_ARGUMENT);
        SP_CHECK_INT(token, -7);
    }
}
