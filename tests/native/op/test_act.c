// SPDX-License-Identifier: Apache-2.0
// Activation panels: norm and packing put every value, scale and sum where the layout says, for any number of tokens.
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/variants.h"
#include "op/rig.h"
#include "test.h"

static const uint32_t TOKENS[] = {1, 2, 15, 16, 17, 40};
static const size_t WIDTHS[] = {32, 96, 160, 576};

// Every plane against the definition, from the rows that were packed.
static void check_panels(const sp_rig *rig, const sp_act *act, uint32_t tokens) {
    for (uint32_t t = 0; t < tokens; t++) {
        const float *x = sp_rows(&rig->run, act->rows_at) + t * act->k;
        const sp_act_panel panel = sp_act_panel_at(&rig->run, act, (sp_extent){tokens, 0}, t / SP_TOKENS);
        const uint32_t slot = t % SP_TOKENS;
        for (size_t g = 0; g < act->k / SP_GROUP; g++) {
            float amax = 0.0f;
            int32_t sum = 0;
            for (size_t i = 0; i < SP_GROUP; i++) amax = fmaxf(amax, fabsf(x[g * SP_GROUP + i]));
            for (size_t i = g * SP_GROUP; i < (g + 1) * SP_GROUP; i++) {
                const int32_t want = (int32_t)rintf(x[i] * (127.0f / amax));
                SP_CHECK_INT(panel.q[(i / 4 * panel.width + slot) * 4 + i % 4], want);
                sum += want;
            }
            const float d = panel.d[g * panel.width + slot];
            SP_CHECK(d == amax / 127.0f);
            SP_CHECK(panel.sum[g * panel.width + slot] == d * (float)sum);
            SP_CHECK_INT(panel.neg[g * panel.width + slot], -sum);
        }
    }
}

SP_TEST(op_act_pack_fills_panels) {
    for (sp_tier tier = SP_TIER_REF; tier < SP_TIER_COUNT; tier++) {
        if (!(sp_rig_tiers() >> tier & 1)) continue;
        for (size_t n = 0; n < sizeof TOKENS / sizeof *TOKENS; n++) {
            for (size_t w = 0; w < sizeof WIDTHS / sizeof *WIDTHS; w++) {
                sp_rig rig;
                sp_rig_open(&rig, tier, 1 << 18, 1);
                const sp_act act = sp_rig_act(&rig, TOKENS[n], WIDTHS[w], true, true, n);
                rig.run.batch.tokens = TOKENS[n];
                sp_test_label("%s tokens=%u k=%zu", sp_tier_name(tier), TOKENS[n], WIDTHS[w]);
                sp_rig_pack(&rig, &act, TOKENS[n]);
                check_panels(&rig, &act, TOKENS[n]);
                sp_rig_close(&rig);
            }
        }
    }
}

// Norm in its four forms: rows, panels, both, and of some rows only, in any order, one of them twice.
SP_TEST(op_act_norm_of_all_rows_and_of_some) {
    enum { ALL = 21, K = 96 };
    static const int32_t some[] = {20, 3, 3, 0};
    float weight[K];
    sp_fill_floats(weight, K, SP_FILL_NORMAL, 1);
    for (int form = 1; form < 4; form++) {
        for (int gather = 0; gather < 2; gather++) {
            sp_rig rig;
            sp_rig_open(&rig, SP_TIER_REF, 1 << 16, K * sizeof(float));
            const uint32_t tokens = gather ? 4 : ALL;
            const sp_act x = sp_rig_act(&rig, ALL, K, true, false, 2);
            const sp_act out = sp_rig_act(&rig, tokens, K, form & 1, form & 2, 0);
            rig.run.batch = (sp_batch){.tokens = ALL, .logit_rows = some, .logit_count = 4};
            const sp_norm op = {.weight = weight, .eps = 1e-5f, .x_at = x.rows_at, .out = out, .gather = gather};
            sp_test_label("form %d gather %d", form, gather);
            SP_RIG_RUN(norm, &op, &rig);
            if (form == 3) check_panels(&rig, &out, tokens);
            for (uint32_t t = 0; t < tokens; t++) {
                const float *row = sp_rows(&rig.run, x.rows_at) + (size_t)(gather ? some[t] : (int32_t)t) * K;
                double squares = 0.0, worst = 0.0;
                for (size_t i = 0; i < K; i++) squares += (double)row[i] * (double)row[i];
                for (size_t i = 0; i < K; i++) {
                    const double want = row[i] / sqrt(squares / K + 1e-5) * (double)weight[i];
                    const double got = form & 1 ? (double)sp_rows(&rig.run, out.rows_at)[t * K + i]
                                                : sp_rig_packed(&rig, &out, tokens, t, i);
                    worst = fmax(worst, fabs(got - want));
                }
                SP_CHECK(worst < (form & 1 ? 1e-5 : 0.05));  // half a step of the largest value, about 10
            }
            sp_rig_close(&rig);
        }
    }
}
