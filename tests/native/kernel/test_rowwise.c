// SPDX-License-Identifier: Apache-2.0
// The kernels of the rowwise class: every tier equals the reference, and the references give what they promise.
#include <math.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/memory.h"
#include "kernel/variants.h"
#include "layout/panel.h"
#include "test.h"

enum { GUARD = 16, CANARY = 0x55 };

// ---- the product

typedef struct product {
    size_t m, n, k, ldy;
    int8_t *w, *a;
    float *wd, *ad, *got, *want;
    int32_t *an;
} product;

static int8_t byte_of(uint64_t *random, bool extreme) {
    if (extreme) return sp_test_random(random) & 1 ? 127 : -127;
    return (int8_t)((int)(sp_test_random(random) % 255) - 127);
}

static product product_make(size_t m, size_t n, size_t k, bool extreme, uint64_t seed) {
    const size_t panels = (m + 15) / 16;
    product p = {.m = m, .n = n, .k = k, .ldy = n + 3};
    p.w = sp_alloc(n, k), p.a = sp_alloc(panels * 16, k);
    p.wd = sp_alloc(n, sizeof(float)), p.ad = sp_alloc(m, sizeof(float)), p.an = sp_alloc(m, sizeof(int32_t));
    p.got = sp_alloc(m * p.ldy + GUARD, sizeof(float)), p.want = sp_alloc(m * p.ldy + GUARD, sizeof(float));
    for (size_t i = 0; i < n * k; i++) p.w[i] = byte_of(&seed, extreme);
    for (size_t i = 0; i < panels * 16 * k; i++) p.a[i] = byte_of(&seed, extreme);
    for (size_t r = 0; r < n; r++) p.wd[r] = sp_random_float(&seed, 0.0f, 0.01f);
    for (size_t t = 0; t < m; t++) {
        p.ad[t] = sp_random_float(&seed, 0.0f, 0.1f);
        for (size_t j = 0; j < k; j++) p.an[t] -= p.a[t / 16 * 16 * k + j / 4 * 64 + t % 16 * 4 + j % 4];
    }
    p.ad[m - 1] = NAN;
    return p;
}

static void product_free(product *p) {
    void *const blocks[] = {p->w, p->a, p->wd, p->ad, p->an, p->got, p->want};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) sp_free(blocks[i]);
}

static void multiply(const product *p, sp_gemm_r_fn fn, float *y) {
    const sp_gemm_r_args args = {p->w, p->a, p->wd, p->ad, p->an, p->m, p->n, p->k, y, p->ldy};
    memset(y, CANARY, (p->m * p->ldy + GUARD) * sizeof *y);
    fn(&args);
}

static size_t compare_product(void (*reference)(void), void (*variant)(void)) {
    static const size_t tokens[] = {1, 2, 3, 5, 8, 12, 15, 16, 17, 24, 31, 33, 48, 61}, rows[] = {16, 32, 48, 64, 112};
    static const size_t depths[] = {32, 64, 96, 160, 576};
    size_t cases = 0;
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        for (size_t j = 0; j < sizeof rows / sizeof *rows; j++) {
            const size_t k = depths[(i + j) % 5];
            sp_test_label("m=%zu n=%zu k=%zu", tokens[i], rows[j], k);
            product p = product_make(tokens[i], rows[j], k, (i + j) % 3 == 0, i * 10 + j);
            multiply(&p, (sp_gemm_r_fn)reference, p.want);
            multiply(&p, (sp_gemm_r_fn)variant, p.got);
            SP_CHECK_FLOATS(p.got, p.want, p.m * p.ldy + GUARD);
            product_free(&p);
            cases++;
        }
    }
    return cases;
}

SP_TEST(kernel_gemm_q8r_tiers_equal) { sp_each_variant(SP_SLOT_GEMM_Q8R, compare_product); }

// ---- expansion

enum { FILE_ROWS = 16, LONGEST = 608 };

typedef struct panel {
    sp_panel_layout layout;
    uint8_t *data;
    float inv[FILE_ROWS], s[LONGEST], values[FILE_ROWS][LONGEST];
} panel;

static void panel_make(panel *p, sp_format format, size_t k, uint64_t seed) {
    const sp_format_info *info = sp_format_get(format);
    const size_t blocks = k / SP_GROUP;
    uint8_t *file = sp_alloc(FILE_ROWS * blocks, info->bytes);
    const void *rows[FILE_ROWS];
    for (size_t i = 0; i < FILE_ROWS * blocks * info->bytes; i++) file[i] = (uint8_t)sp_test_random(&seed);
    for (size_t i = 0; i < FILE_ROWS * blocks; i++) {
        for (size_t half = 0; half < (format == SP_Q4_1 ? 2 : 1); half++) {
            const uint16_t d = sp_f32_to_f16(sp_random_float(&seed, -0.02f, 0.02f));
            memcpy(file + i * info->bytes + half * sizeof d, &d, sizeof d);
        }
    }
    SP_REQUIRE(sp_panel_layout_make(&p->layout, format, k) == SP_OK);
    p->data = sp_alloc(1, p->layout.bytes);
    for (size_t r = 0; r < FILE_ROWS; r++) rows[r] = r == 5 ? NULL : file + r * blocks * info->bytes;
    sp_panel_pack(&p->layout, p->data, rows);
    sp_free(file);
    for (size_t j = 0; j < k; j++) p->s[j] = j % 37 == 3 ? 0.0f : sp_random_float(&seed, 0.05f, 4.0f);
    for (size_t r = 0; r < FILE_ROWS; r++) {
        float most = 0.0f;
        sp_panel_row_f32(&p->layout, p->values[r], p->data, r);
        for (size_t j = 0; j < k; j++) most = fmaxf(most, fabsf(p->values[r][j] * p->s[j]));
        p->inv[r] = most > 0.0f ? 127.0f / most : 0.0f;
    }
}

static void expand(const panel *p, sp_expand_r_fn fn, int8_t *dst) {
    const sp_expand_r_args args = {dst, p->data, p->inv, p->s, p->layout.k};
    memset(dst, CANARY, 16 * LONGEST + GUARD);
    fn(&args);
}

static size_t compare_format(sp_format format, void (*reference)(void), void (*variant)(void)) {
    static const size_t depths[] = {32, 64, 96, 256, LONGEST};
    static alignas(SP_LINE) int8_t got[16 * LONGEST + GUARD], want[sizeof got];
    size_t cases = 0;
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        for (uint64_t seed = 0; seed < 4; seed++) {
            static panel p;
            const size_t k = depths[i];
            sp_test_label("k=%zu seed=%d", k, (int)seed);
            panel_make(&p, format, k, seed * 5 + i);
            expand(&p, (sp_expand_r_fn)reference, want);
            expand(&p, (sp_expand_r_fn)variant, got);
            SP_CHECK_BYTES(got, want, 16 * k + GUARD);
            for (size_t j = 0; j < k; j++)
                for (size_t r = 0; r < FILE_ROWS; r++) {
                    const double exact = (double)p.values[r][j] * p.s[j] * p.inv[r];
                    const int e = want[j / 4 * 64 + r * 4 + j % 4];
                    SP_CHECK(abs(e) <= 127 && fabs(e - exact) < 0.501);
                }
            sp_free(p.data);
            cases++;
        }
    }
    return cases;
}

static size_t compare_q4s(void (*reference)(void), void (*variant)(void)) {
    return compare_format(SP_Q4_0, reference, variant);
}
static size_t compare_q4a(void (*reference)(void), void (*variant)(void)) {
    return compare_format(SP_Q4_1, reference, variant);
}
static size_t compare_q8s(void (*reference)(void), void (*variant)(void)) {
    return compare_format(SP_Q8_0, reference, variant);
}

// Scales, factors and smoothing that leave every other result half way between two integers: to even.
static size_t compare_ties(sp_format format, void (*reference)(void), void (*variant)(void)) {
    static alignas(SP_LINE) int8_t got[16 * LONGEST + GUARD], want[sizeof got];
    static panel p;
    panel_make(&p, format, 64, 11);
    for (size_t group = 0; group < (format == SP_Q4_1 ? 4 : 2); group++)
        for (size_t r = 0; r < FILE_ROWS; r++) memcpy(p.data + group * 32 + r * 2, &(uint16_t){0x3c00}, 2);  // 1
    for (size_t r = 0; r < FILE_ROWS; r++) p.inv[r] = r % 2 ? 1.0f : -1.0f;
    for (size_t j = 0; j < 64; j++) p.s[j] = 0.5f;
    expand(&p, (sp_expand_r_fn)reference, want);
    expand(&p, (sp_expand_r_fn)variant, got);
    SP_CHECK_BYTES(got, want, 16 * 64 + GUARD);
    for (size_t r = 0; r < FILE_ROWS; r++) {
        sp_panel_row_f32(&p.layout, p.values[r], p.data, r);
        for (size_t j = 0; j < 64; j++)
            SP_CHECK_INT(got[j / 4 * 64 + r * 4 + j % 4], (int)rintf(p.values[r][j] * 0.5f * p.inv[r]));
    }
    sp_free(p.data);
    return 1;
}

static size_t ties_q4s(void (*reference)(void), void (*variant)(void)) {
    return compare_ties(SP_Q4_0, reference, variant);
}
static size_t ties_q4a(void (*reference)(void), void (*variant)(void)) {
    return compare_ties(SP_Q4_1, reference, variant);
}
static size_t ties_q8s(void (*reference)(void), void (*variant)(void)) {
    return compare_ties(SP_Q8_0, reference, variant);
}

SP_TEST(kernel_expand_q4s_ties_to_even) { sp_each_variant(SP_SLOT_EXPAND_Q4S, ties_q4s); }
SP_TEST(kernel_expand_q4a_ties_to_even) { sp_each_variant(SP_SLOT_EXPAND_Q4A, ties_q4a); }
SP_TEST(kernel_expand_q8s_ties_to_even) { sp_each_variant(SP_SLOT_EXPAND_Q8S, ties_q8s); }

SP_TEST(kernel_expand_q4s_tiers_equal) { sp_each_variant(SP_SLOT_EXPAND_Q4S, compare_q4s); }
SP_TEST(kernel_expand_q4a_tiers_equal) { sp_each_variant(SP_SLOT_EXPAND_Q4A, compare_q4a); }
SP_TEST(kernel_expand_q8s_tiers_equal) { sp_each_variant(SP_SLOT_EXPAND_Q8S, compare_q8s); }

// ---- quantisation of rows

static size_t compare_quant(void (*reference)(void), void (*variant)(void)) {
    static const size_t lengths[] = {32, 64, 96, 160, 576, LONGEST};
    static float x[LONGEST], u[LONGEST];
    static int8_t got[16 * LONGEST], want[16 * LONGEST];
    size_t cases = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (int fill = 0; fill < SP_FILL_COUNT; fill++) {
            const size_t n = lengths[i], t = (i + (size_t)fill) % 16;
            uint64_t seed = i;
            float d[2];
            int32_t neg[2];
            sp_test_label("n=%zu fill=%d", n, fill);
            sp_fill_floats(x, n, (sp_fill)fill, i + 7);
            for (size_t j = 0; j < n; j++) u[j] = j % 41 == 9 ? 0.0f : sp_random_float(&seed, 0.2f, 3.0f);
            memset(got, CANARY, sizeof got);
            memset(want, CANARY, sizeof want);
            const sp_quant_row_args one = {x, u, n, want + 4 * t, &d[0], &neg[0]},
                                    two = {x, u, n, got + 4 * t, &d[1], &neg[1]};
            ((sp_quant_row_fn)reference)(&one);
            ((sp_quant_row_fn)variant)(&two);
            SP_CHECK_BYTES(got, want, sizeof got);
            SP_CHECK_FLOATS(&d[1], &d[0], 1);
            SP_CHECK_INT(neg[1], neg[0]);
            cases++;
        }
    }
    return cases;
}

SP_TEST(kernel_quant_row_tiers_equal) { sp_each_variant(SP_SLOT_QUANT_ROW, compare_quant); }
