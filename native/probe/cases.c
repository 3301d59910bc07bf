// SPDX-License-Identifier: Apache-2.0
#include "probe/cases.h"

#include <string.h>

#include "base/dtype.h"
#include "base/memory.h"
#include "layout/panel.h"

enum { COUNT = 8, TOKENS = 61, COLUMNS = 112, GAP = 3, CANARY = 0x55 };
#define BEFORE 0.5f  // what a float product is added to, where it accumulates

// One product: m tokens x n columns over k. The operands' meaning is the slot's (kernel/families.h).
typedef struct product {
    sp_slot slot;
    bool accumulate;
    size_t m, n, k;
    void *w, *a;
    float *wd, *ad, *as;
    int32_t *an;
    float *want;  // [m][n]
} product;

struct sp_cases {
    product each[COUNT];
    float *got;  // room for the largest
};

static const struct {
    sp_slot slot;
    bool accumulate;
    size_t m, n, k;
} plan[COUNT] = {
    {SP_SLOT_GEMM_Q8R, false, TOKENS, COLUMNS, 160}, {SP_SLOT_GEMM_Q8R, false, 17, 48, 32},
    {SP_SLOT_GEMM_F32, false, 33, COLUMNS, 37},      {SP_SLOT_GEMM_F32, true, 33, COLUMNS, 64},
    {SP_SLOT_GEMM_F16, false, 33, COLUMNS, 37},      {SP_SLOT_GEMM_Q4S, false, 33, 16, 160},
    {SP_SLOT_GEMM_Q4A, false, 33, 16, 160},          {SP_SLOT_GEMM_Q8S, false, 33, 16, 160},
};

// ---- operands

// Knuth's 64-bit linear congruential generator; its high half is random enough for operands.
static uint32_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

static float between(uint64_t *state, float low, float high) {
    return low + (high - low) * ((float)(next(state) >> 8) * 0x1p-24f);
}

static void fill_bytes(int8_t *bytes, size_t n, uint64_t *state) {
    for (size_t i = 0; i < n; i++) bytes[i] = (int8_t)((int)(next(state) % 255) - 127);
}

static void fill_floats(float *x, size_t n, float low, float high, uint64_t *state) {
    for (size_t i = 0; i < n; i++) x[i] = between(state, low, high);
}

static bool make_rowwise(product *p, uint64_t *state) {
    const size_t panels = (p->m + 15) / 16;
    int8_t *w = p->w = sp_alloc(p->n, p->k), *a = p->a = sp_alloc(panels * 16, p->k);
    p->wd = sp_alloc(p->n, sizeof(float)), p->ad = sp_alloc(p->m, sizeof(float));
    p->an = sp_alloc(p->m, sizeof(int32_t));
    if (!w || !a || !p->wd || !p->ad || !p->an) return false;
    fill_bytes(w, p->n * p->k, state);
    fill_bytes(a, panels * 16 * p->k, state);
    fill_floats(p->wd, p->n, 0.0f, 0.01f, state);
    fill_floats(p->ad, p->m, 0.0f, 0.1f, state);
    for (size_t t = 0; t < p->m; t++)
        for (size_t j = 0; j < p->k; j++) p->an[t] -= a[t / 16 * 16 * p->k + j / 4 * 64 + t % 16 * 4 + j % 4];
    return true;
}

static bool make_float(product *p, uint64_t *state) {
    const size_t weights = p->n * p->k;
    float *a = p->a = sp_alloc(p->m * p->k, sizeof(float));
    void *w = p->w = sp_alloc(weights, p->slot == SP_SLOT_GEMM_F16 ? sizeof(uint16_t) : sizeof(float));
    if (!a || !w) return false;
    fill_floats(a, p->m * p->k, -4.0f, 4.0f, state);
    for (size_t i = 0; i < weights; i++) {
        const float x = between(state, -2.0f, 2.0f);
        if (p->slot == SP_SLOT_GEMM_F16) ((uint16_t *)w)[i] = sp_f32_to_f16(x);
        else ((float *)w)[i] = x;
    }
    return true;
}

static sp_format format_of(sp_slot slot) {
    return slot == SP_SLOT_GEMM_Q4S ? SP_Q4_0 : slot == SP_SLOT_GEMM_Q4A ? SP_Q4_1 : SP_Q8_0;
}

// Any bits are weights; scales (and minima), which open each block, are small numbers.
static bool make_grouped(product *p, uint64_t *state) {
    sp_panel_layout layout;
    const size_t groups = p->k / SP_GROUP, slots = groups * p->m;
    const size_t blocks = (groups + 1) / 2, head = SP_BLOCK_SCALES * (p->slot == SP_SLOT_GEMM_Q4A ? 2 : 1);
    if (sp_panel_layout_make(&layout, format_of(p->slot), p->k) != SP_OK) return false;
    int8_t *w = p->w = sp_alloc(1, layout.bytes), *a = p->a = sp_alloc(p->m, p->k);
    p->ad = sp_alloc(slots, sizeof(float)), p->as = sp_alloc(slots, sizeof(float));
    p->an = sp_alloc(slots, sizeof(int32_t));
    if (!w || !a || !p->ad || !p->as || !p->an) return false;
    fill_bytes(w, layout.bytes, state);
    for (size_t i = 0; i < blocks * head / 2; i++) {
        const uint16_t scale = sp_f32_to_f16(between(state, -0.02f, 0.02f));
        memcpy(w + i / (head / 2) * (layout.bytes / blocks) + i % (head / 2) * 2, &scale, sizeof scale);
    }
    fill_bytes(a, p->m * p->k, state);
    fill_floats(p->ad, slots, 0.0f, 0.1f, state);
    for (size_t i = 0; i < p->m * p->k; i++) p->an[i / (SP_GROUP * p->m) * p->m + i / 4 % p->m] -= a[i];
    for (size_t i = 0; i < slots; i++) p->as[i] = p->ad[i] * (float)-p->an[i];
    return true;
}

// ---- calls

static bool is_float(sp_slot slot) { return slot == SP_SLOT_GEMM_F32 || slot == SP_SLOT_GEMM_F16; }

// m x n elements of the product from (t, j) on, where a token's and a column's operands can be pointed at.
static void call(const product *p, const sp_kernel *kernel, size_t t, size_t m, size_t j, size_t n, float *y,
                 size_t ldy) {
    if (p->slot == SP_SLOT_GEMM_Q8R) {
        ((sp_gemm_r_fn)kernel->fn)(&(sp_gemm_r_args){p->w, p->a, p->wd, p->ad, p->an, m, n, p->k, y, ldy});
    } else if (is_float(p->slot)) {
        const size_t size = p->slot == SP_SLOT_GEMM_F16 ? sizeof(uint16_t) : sizeof(float), strip = 16 * p->k;
        ((sp_gemm_f_fn)kernel->fn)(&(sp_gemm_f_args){.a = (const float *)p->a + t * p->k,
                                                     .lda = p->k,
                                                     .b = (const char *)p->w + j / 16 * strip * size,
                                                     .strip = strip,
                                                     .step = 16,
                                                     .y = y,
                                                     .ldy = ldy,
                                                     .m = m,
                                                     .n = n,
                                                     .k = p->k,
                                                     .accumulate = p->accumulate});
    } else {
        ((sp_gemm_q_fn)kernel->fn)(&(sp_gemm_q_args){p->w, (const int8_t *)p->a + 4 * t, p->ad + t, p->an + t,
                                                     p->as + t, p->m, m, p->k / SP_GROUP, y, ldy});
    }
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

// The whole product, in the largest parts that the reference takes.
static void compute_want(const product *p, const sp_kernel *reference) {
    const bool any = p->slot == SP_SLOT_GEMM_Q8R;
    const size_t mr = any ? p->m : reference->mr, nr = any ? p->n : reference->nr;
    for (size_t i = 0; i < p->m * p->n; i++) p->want[i] = BEFORE;
    for (size_t t = 0; t < p->m; t += mr)
        for (size_t j = 0; j < p->n; j += nr)
            call(p, reference, t, least(mr, p->m - t), j, least(nr, p->n - j), p->want + t * p->n + j, p->n);
}

static bool part_holds(const product *p, const sp_kernel *kernel, size_t m, size_t n, float *got) {
    const size_t ldy = p->n + GAP;
    float canary[COLUMNS + GAP];
    memset(canary, CANARY, sizeof canary);
    memset(got, CANARY, p->m * ldy * sizeof *got);
    for (size_t i = 0; i < m * n; i++) got[i / n * ldy + i % n] = BEFORE;
    call(p, kernel, 0, m, 0, n, got, ldy);
    for (size_t t = 0; t < p->m; t++) {
        const size_t written = t < m ? n : 0;
        if (memcmp(got + t * ldy, p->want + t * p->n, written * sizeof *got) != 0 ||
            memcmp(got + t * ldy + written, canary, (ldy - written) * sizeof *got) != 0) {
            return false;
        }
    }
    return true;
}

static bool product_holds(const product *p, const sp_kernel *kernel, float *got, uint64_t *calls) {
    const bool any = p->slot == SP_SLOT_GEMM_Q8R;
    const size_t most_m = any ? p->m : least(p->m, kernel->mr), most_n = any ? p->n : least(p->n, kernel->nr / 16 * 16);
    const size_t tokens[] = {1, most_m / 2 + 1, most_m / 16 * 16, most_m};
    const size_t columns[] = {16, most_n / 32 * 16 + 16, most_n / 32 * 32, most_n};
    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < 4; j++) {
            if (tokens[i] == 0 || columns[j] == 0 || columns[j] > most_n) continue;
            (*calls)++;
            if (!part_holds(p, kernel, least(tokens[i], most_m), columns[j], got)) return false;
        }
    }
    return true;
}

// ---- all of them

bool sp_cases_cover(sp_slot slot) {
    for (size_t i = 0; i < COUNT; i++)
        if (plan[i].slot == slot) return true;
    return false;
}

bool sp_cases_hold(const sp_cases *cases, const sp_kernel *kernel, uint64_t *calls) {
    for (size_t i = 0; i < COUNT; i++) {
        const product *p = &cases->each[i];
        if (p->slot == kernel->slot && !product_holds(p, kernel, cases->got, calls)) return false;
    }
    return true;
}

static bool make(product *p, const sp_kernel *reference, uint64_t *state) {
    p->want = sp_alloc(p->m * p->n, sizeof(float));
    const bool made = p->slot == SP_SLOT_GEMM_Q8R ? make_rowwise(p, state)
                      : is_float(p->slot)         ? make_float(p, state)
                                                  : make_grouped(p, state);
    if (!p->want || !made) return false;
    compute_want(p, reference);
    return true;
}

sp_status sp_cases_make(sp_cases **out) {
    uint64_t state = 1;
    sp_kernel_set reference;
    sp_kernel_select(&reference, 1u << SP_TIER_REF);
    *out = NULL;
    sp_cases *cases = sp_alloc(1, sizeof *cases);
    if (!cases) return SP_ERR_MEMORY;
    cases->got = sp_alloc(TOKENS * (COLUMNS + GAP), sizeof(float));
    bool made = cases->got != NULL;
    for (size_t i = 0; i < COUNT && made; i++) {
        product *p = &cases->each[i];
        p->slot = plan[i].slot, p->accumulate = plan[i].accumulate;
        p->m = plan[i].m, p->n = plan[i].n, p->k = plan[i].k;
        made = make(p, reference.k[p->slot], &state);
    }
    if (made) *out = cases;
    else sp_cases_free(cases);
    return made ? SP_OK : SP_ERR_MEMORY;
}

void sp_cases_free(sp_cases *cases) {
    if (!cases) return;
    for (size_t i = 0; i < COUNT; i++) {
        const product *p = &cases->each[i];
        void *const blocks[] = {p->w, p->a, p->wd, p->ad, p->as, p->an, p->want};
        for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) sp_free(blocks[b]);
    }
    sp_free(cases->got);
    sp_free(cases);
}
