// SPDX-License-Identifier: Apache-2.0
#include "op/sample.h"

#include <math.h>
#include <string.h>

#include "op/mass.h"
#include "op/order.h"
#include "op/philox.h"

// Candidates that the first look at a row ranks, and the most that the top-k kernel is asked for. A draw rarely needs
// more; when it does, the whole row is sorted. The order is the same either way.
enum { FIRST_LOOK = 256, KERNEL_LIMIT = 1024 };

// Candidates in order, found and weighed as far as the draw has looked.
typedef struct ranking {
    const sp_kernel_set *kernels;
    const float *row;
    size_t vocab, limit;  // of logits, and of candidates after top-k
    float peak, scale;
    int32_t *ids;    // [2 * vocab]
    float *weights;  // [vocab]
    uint32_t *keys;  // [2 * vocab]
    size_t ranked, weighed;
} ranking;

size_t sp_sample_scratch_bytes(size_t vocab) { return vocab * (2 * sizeof(float) + 4 * sizeof(int32_t)); }

static bool in_range(const int32_t *ids, size_t count, size_t vocab) {
    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= vocab) return false;
    return true;
}

static sp_status validate(const sp_sample_args *args) {
    if (args->vocab == 0 || args->vocab > INT32_MAX || args->answer_count > args->recent_count) return SP_ERR_ARGUMENT;
    if (!(args->temperature >= 0.0f) || !(args->repetition > 0.0f)) return SP_ERR_ARGUMENT;
    if (isnan(args->top_p) || isnan(args->min_p) || isnan(args->presence) || isnan(args->frequency))
        return SP_ERR_ARGUMENT;
    if (!in_range(args->recent, args->recent_count, args->vocab)) return SP_ERR_ARGUMENT;
    if (!in_range(args->bias_ids, args->bias_count, args->vocab)) return SP_ERR_ARGUMENT;
    return SP_OK;
}

static void add_bias(const sp_sample_args *args, float *row) {
    for (size_t i = 0; i < args->bias_count; i++) row[args->bias_ids[i]] += args->bias_values[i];
}

// `counts` has one element a token; only those of recent tokens are touched.
static void penalise(const sp_sample_args *args, float *row, int32_t *counts) {
    const int32_t *recent = args->recent;
    const size_t prompt_count = args->recent_count - args->answer_count;
    for (size_t i = 0; i < args->recent_count; i++) counts[recent[i]] = 0;
    for (size_t i = prompt_count; i < args->recent_count; i++) counts[recent[i]]++;
    for (size_t i = 0; i < args->recent_count; i++) {
        int32_t *count = &counts[recent[i]];
        float *logit = &row[recent[i]];
        if (*count < 0) continue;  // done
        *logit = *logit > 0.0f ? *logit / args->repetition : *logit * args->repetition;
        if (*count > 0) *logit -= (float)*count * args->frequency + args->presence;
        *count = -1;
    }
}

// The row after steps 1 and 2: the caller's own where nothing changes it, else an edited copy in `copy`.
static const float *edited(const sp_sample_args *args, float *copy, int32_t *counts) {
    const bool penalties = args->repetition != 1.0f || args->presence != 0.0f || args->frequency != 0.0f;
    const bool penalised = penalties && args->recent_count > 0;
    if (args->bias_count == 0 && !penalised) return args->logits;
    memcpy(copy, args->logits, args->vocab * sizeof *copy);
    add_bias(args, copy);
    if (penalised) penalise(args, copy, counts);
    return copy;
}

// Ranks at least `count` candidates.
static void rank(ranking *r, size_t count) {
    if (count <= KERNEL_LIMIT) {
        ((sp_topk_fn)r->kernels->k[SP_SLOT_TOPK]->fn)(r->ids, r->weights, r->row, r->vocab, count);
        r->ranked = count;
    } else {
        sp_order_descending(r->row, r->vocab, r->ids, r->keys);
        r->ranked = r->limit;
    }
}

// Weight of candidate i < limit.
static float weight(ranking *r, size_t i) {
    if (i >= r->ranked) rank(r, r->ranked == 0 && r->limit > KERNEL_LIMIT ? FIRST_LOOK : r->limit);
    for (; r->weighed <= i; r->weighed++)
        r->weights[r->weighed] = sp_exp2(sp_mass_exponent(r->row[r->ids[r->weighed]], r->peak, r->scale));
    return r->weights[i];
}

// Weight of all candidates together.
static double total_weight(ranking *r) {
    if (r->limit == r->vocab) return sp_mass(r->kernels, r->row, r->vocab, r->peak, r->scale);
    double total = 0.0;
    for (size_t i = 0; i < r->limit; i++) total += weight(r, i);
    return total;
}

// Steps 6 and 7: *count candidates stay; returns their weight together. What weighs nothing never stays.
static double truncate(ranking *r, const sp_sample_args *args, size_t *count) {
    *count = r->limit;
    if (args->top_p >= 1.0f && args->min_p <= 0.0f) return total_weight(r);
    const double enough = args->top_p < 1.0f ? (double)args->top_p * total_weight(r) : INFINITY;
    double sum = 0.0;
    for (size_t i = 0; i < r->limit; i++) {
        const float w = weight(r, i);
        if (i > 0 && (sum >= enough || w < args->min_p || w == 0.0f)) {
            *count = i;
            break;
        }
        sum += w;
    }
    return sum;
}

// Step 8. Rounding may leave the sum of all below the target: then it is the last one that weighs anything.
static int32_t draw(ranking *r, const sp_sample_args *args) {
    size_t count, chosen = 0;
    const double total = truncate(r, args, &count);
    const double target = sp_philox_uniform(args->seed, args->draw) * total;
    double sum = 0.0;
    for (size_t i = 0; i < count && sum <= target; i++) {
        const float w = weight(r, i);
        if (w == 0.0f) break;
        sum += w;
        chosen = i;
    }
    return r->ids[chosen];
}

sp_status sp_sample(const sp_sample_args *args, int32_t *token) {
    const sp_status status = validate(args);
    if (status != SP_OK) return status;
    const size_t n = args->vocab;
    float *copy = args->scratch;
    int32_t *ids = (int32_t *)(copy + n);
    float *weights = (float *)(ids + 2 * n);
    uint32_t *keys = (uint32_t *)(weights + n);
    const float *row = edited(args, copy, ids);
    const int64_t best = ((sp_argmax_fn)args->kernels->k[SP_SLOT_ARGMAX]->fn)(row, n);
    if (best < 0 || !isfinite(row[best])) return SP_ERR_NUMERIC;
    if (args->temperature == 0.0f) {
        *token = (int32_t)best;
        return SP_OK;
    }
    ranking r = {
        .kernels = args->kernels,
        .row = row,
        .vocab = n,
        .limit = args->top_k == 0 || args->top_k > n ? n : args->top_k,
        .peak = row[best],
        .scale = sp_mass_scale(args->temperature),
        .ids = ids,
        .weights = weights,
        .keys = keys,
    };
    *token = draw(&r, args);
    return SP_OK;
}
