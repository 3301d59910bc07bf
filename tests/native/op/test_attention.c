// SPDX-License-Identifier: Apache-2.0
// Attention against one softmax over all keys in double; and the same bits however the work is split: spans of several
// tokens or of one, blocks split over workers or not, keys and values in float32 or (being representable) in float16.
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/memory.h"
#include "kernel/variants.h"
#include "op/rig.h"
#include "test.h"

enum { PAGES = 4, LENGTH = 200, LAYER = 1 };

typedef struct sizes {
    uint32_t heads, kv_heads, head_dim;
} sizes;

static const sizes SIZES[] = {{1, 1, 8}, {4, 2, 40}, {7, 1, 64}, {3, 3, 72}, {2, 1, 256}};

// Keys, values [kv_heads][LENGTH][head_dim] and queries [LENGTH][heads][head_dim], keys and values exact in float16.
typedef struct problem {
    sizes s;
    float *k, *v, *q;
} problem;

static float *halves(size_t n, uint64_t seed) {
    float *x = sp_alloc(n, sizeof *x);
    sp_fill_floats(x, n, SP_FILL_NORMAL, seed);
    for (size_t i = 0; i < n; i++) x[i] = sp_f16_to_f32(sp_f32_to_f16(x[i] * 0.3f));
    return x;
}

static problem problem_make(sizes s) {
    const size_t kv = (size_t)s.kv_heads * LENGTH * s.head_dim, q = (size_t)LENGTH * s.heads * s.head_dim;
    return (problem){.s = s, .k = halves(kv, 1), .v = halves(kv, 2), .q = halves(q, 3)};
}

static void problem_free(problem *p) { sp_free(p->k), sp_free(p->v), sp_free(p->q); }

// A store whose pages 0..3 hold the keys and values of one sequence; page numbers are given out backwards.
static sp_kv *store(const problem *p, bool f32, int32_t pages[PAGES]) {
    const sizes s = p->s;
    sp_kv *kv = NULL;
    const sp_kv_config config = {.layers = 2, .heads = s.kv_heads, .head_dim = s.head_dim, .f32 = f32, .pages = PAGES};
    SP_CHECK_INT(sp_kv_create(&kv, &config), SP_OK);
    for (int i = 0; i < PAGES; i++) pages[PAGES - 1 - i] = sp_kv_alloc(kv);
    for (uint32_t h = 0; h < s.kv_heads; h++) {
        for (uint32_t at = 0; at < LENGTH; at++) {
            const size_t slot = at % SP_KV_PAGE, from = ((size_t)h * LENGTH + at) * s.head_dim;
            void *keys = sp_kv_keys(kv, pages[at / SP_KV_PAGE], LAYER, h);
            void *values = sp_kv_values(kv, pages[at / SP_KV_PAGE], LAYER, h);
            for (uint32_t i = 0; i < s.head_dim; i++) {
                const size_t to_key = (slot / 16 * s.head_dim + i) * 16 + slot % 16,
                             to_value = slot * kv->value_row + i;
                if (f32) ((float *)keys)[to_key] = p->k[from + i], ((float *)values)[to_value] = p->v[from + i];
                else
                    ((uint16_t *)keys)[to_key] = sp_f32_to_f16(p->k[from + i]),
                               ((uint16_t *)values)[to_value] = sp_f32_to_f16(p->v[from + i]);
            }
        }
    }
    return kv;
}

// The int8 panels are those of the float32 rows, whoever completed them.
static void check_panels(sp_rig *rig, const sp_act *act, uint32_t tokens) {
    const sp_extent all = sp_all_rows(&rig->run);
    for (uint32_t p = 0; p < sp_panels_of(all); p++) {
        const sp_act_panel panel = sp_act_panel_at(&rig->run, act, all, p);
        const size_t bytes = (panel.rowwise ? 16 : panel.width) * act->k;
        const size_t scales = panel.rowwise ? panel.width : panel.width * act->k / SP_GROUP;
        int8_t *q = sp_alloc(bytes, 1);
        float *d = sp_alloc(scales, sizeof *d);
        memcpy(q, panel.q, bytes), memcpy(d, panel.d, scales * sizeof *d);
        memset(panel.d, 0, scales * sizeof *d);
        sp_rig_pack(rig, act, tokens);
        SP_CHECK_BYTES(q, panel.q, bytes);
        SP_CHECK_FLOATS(d, panel.d, scales);
        sp_free(q), sp_free(d);
    }
}

// Attention of positions [start, start + rows) in spans of `step` tokens at once, float32 [rows][heads * head_dim].
static void attend(const problem *p, sp_tier tier, sp_kv *kv, const int32_t *pages, uint32_t start, uint32_t rows,
                   uint32_t step, uint32_t workers, float *out) {
    const sizes s = p->s;
    const size_t width = (size_t)s.heads * s.head_dim;
    const size_t partial = sp_attention_partial_bytes(s.heads, s.kv_heads, s.head_dim, workers, 1, PAGES);
    for (uint32_t at = 0; at < rows; at += step) {
        const uint32_t n = rows - at < step ? rows - at : step;
        sp_rig rig;
        sp_rig_open(&rig, tier, (12 * n + 40) * width + partial + 8192,
                    sp_op_scratch_bytes(n, s.heads, s.kv_heads, s.head_dim, 8));
        const size_t q_at = sp_rig_take(&rig, n * width * sizeof(float));
        memcpy(sp_rows(&rig.run, q_at), p->q + (start + at) * width, n * width * sizeof(float));
        const sp_span span = {.rows = n, .start = (int32_t)(start + at), .pages = pages};
        const bool packed = width % SP_GROUP == 0;
        rig.run.batch = (sp_batch){.tokens = n, .spans = &span, .span_count = 1, .rowwise = workers > 1 ? n : 0};
        sp_act result = sp_rig_act(&rig, n, width, true, packed, 0);
        if (packed && workers > 1) sp_rig_smooth(&rig, &result, n, 2, 1);
        const sp_attention op = {
            .q_at = q_at,
            .out = result,
            .layer = LAYER,
            .heads = s.heads,
            .kv_heads = s.kv_heads,
            .head_dim = s.head_dim,
            .partial_at = sp_rig_take(&rig, partial),
        };
        rig.run.kv = kv;
        rig.run.workers = workers;
        SP_RIG_RUN(attention, &op, &rig);
        memcpy(out + at * width, sp_rows(&rig.run, op.out.rows_at), n * width * sizeof(float));
        if (packed) check_panels(&rig, &op.out, n);
        sp_rig_close(&rig);
    }
}

static void plain(const problem *p, uint32_t position, uint32_t head, double *out) {
    const sizes s = p->s;
    const float *q = p->q + ((size_t)position * s.heads + head) * s.head_dim;
    const size_t first = (size_t)(head / (s.heads / s.kv_heads)) * LENGTH * s.head_dim;
    double most = -INFINITY, sum = 0.0, scores[LENGTH];
    for (uint32_t j = 0; j <= position; j++) {
        scores[j] = 0.0;
        for (uint32_t i = 0; i < s.head_dim; i++) scores[j] += (double)q[i] * (double)p->k[first + j * s.head_dim + i];
        most = fmax(most, scores[j]);
    }
    memset(out, 0, s.head_dim * sizeof *out);
    for (uint32_t j = 0; j <= position; j++) {
        const double weight = exp2(scores[j] - most);  // scores are in units of log2
        sum += weight;
        for (uint32_t i = 0; i < s.head_dim; i++) out[i] += weight * (double)p->v[first + j * s.head_dim + i];
    }
    for (uint32_t i = 0; i < s.head_dim; i++) out[i] /= sum;
}

static void check_values(const problem *p, const float *got) {
    const sizes s = p->s;
    double want[256];
    for (uint32_t t = 0; t < LENGTH; t += 9) {
        for (uint32_t h = 0; h < s.heads; h++) {
            plain(p, t, h, want);
            for (uint32_t i = 0; i < s.head_dim; i++)
                SP_CHECK(fabs((double)got[((size_t)t * s.heads + h) * s.head_dim + i] - want[i]) < 1e-5);
        }
    }
}

static void check_tier(const problem *p, sp_tier tier, const float *want) {
    enum { TAIL = 12 };  // tokens taken one by one, over the end of a page
    const size_t width = (size_t)p->s.heads * p->s.head_dim;
    float *got = sp_alloc(LENGTH * width, sizeof *got);
    for (int f32 = 0; f32 < 2; f32++) {
        int32_t pages[PAGES];
        sp_kv *kv = store(p, f32, pages);
        for (uint32_t workers = 1; workers <= 4; workers += 3) {
            sp_test_label("%s %ux%ux%u f32=%d workers=%u", sp_tier_name(tier), p->s.heads, p->s.kv_heads, p->s.head_dim,
                          f32, workers);
            attend(p, tier, kv, pages, 0, LENGTH, 37, workers, got);
            SP_CHECK_FLOATS(got, want, LENGTH * width);
            attend(p, tier, kv, pages, 120, TAIL, 1, workers, got);
            SP_CHECK_FLOATS(got, want + 120 * width, TAIL * width);
        }
        sp_kv_destroy(kv);
    }
    sp_free(got);
}

SP_TEST(op_attention_is_one_function) {
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        problem p = problem_make(SIZES[i]);
        float *want = sp_alloc((size_t)LENGTH * p.s.heads * p.s.head_dim, sizeof *want);
        int32_t pages[PAGES];
        sp_kv *kv = store(&p, true, pages);
        attend(&p, SP_TIER_REF, kv, pages, 0, LENGTH, LENGTH, 1, want);
        check_values(&p, want);
        for (sp_tier tier = SP_TIER_REF; tier < SP_TIER_COUNT; tier++)
            if (sp_rig_tiers() >> tier & 1) check_tier(&p, tier, want);
        sp_kv_destroy(kv);
        sp_free(want);
        problem_free(&p);
    }
}
