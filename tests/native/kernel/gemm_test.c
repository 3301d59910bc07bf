// SPDX-License-Identifier: Apache-2.0
// Every matrix-product kernel that this machine can run gives the reference's
// bits; the reference gives the values that the formats define.
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/memory.h"
#include "kernel/kernel.h"
#include "layout/panel.h"
#include "test.h"

enum { TOKENS = 16 };

typedef struct operands {
    sp_panel_layout layout;
    uint8_t *panel;
    size_t width;
    int8_t *a;
    float *ad, *as;
    int32_t *an;
} operands;

static float uniform(uint64_t *random) { return (float)(sp_test_random(random) >> 40) / (float)(1 << 23) - 1.0f; }

// A panel packed from random file rows with small scales.
static void fill_panel(operands *o, uint64_t *random) {
    const sp_format_info *info = sp_format_get(o->layout.format);
    const size_t blocks = o->layout.k / SP_GROUP, halves = o->layout.format == SP_Q4_1 ? 2 : 1;
    uint8_t *file = sp_alloc(16 * blocks, info->bytes);
    const void *rows[SP_PANEL_ROWS];
    for (size_t i = 0; i < 16 * blocks * info->bytes; i++) file[i] = (uint8_t)sp_test_random(random);
    for (size_t i = 0; i < 16 * blocks; i++) {
        for (size_t j = 0; j < halves; j++) {
            const uint16_t half = sp_f32_to_f16(uniform(random) * 0.01f);
            memcpy(file + i * info->bytes + j * sizeof half, &half, sizeof half);
        }
    }
    for (size_t r = 0; r < SP_PANEL_ROWS; r++) rows[r] = file + r * blocks * info->bytes;
    sp_panel_pack(&o->layout, o->panel, rows);
    sp_free(file);
}

// The same with all weights at one end of their range and all scales and minima
// one.
static void fill_extreme(operands *o) {
    const sp_format_info *info = sp_format_get(o->layout.format);
    const size_t blocks = o->layout.k / SP_GROUP, halves = o->layout.format == SP_Q4_1 ? 2 : 1;
    uint8_t *file = sp_alloc(blocks, info->bytes);
    const void *rows[SP_PANEL_ROWS];
    memset(file, o->layout.format == SP_Q8_0 ? 0x80 : 0xff, blocks * info->bytes);
    for (size_t i = 0; i < blocks; i++) {
        for (size_t j = 0; j < halves; j++) {
            const uint16_t one = sp_f32_to_f16(1.0f);
            memcpy(file + i * info->bytes + j * sizeof one, &one, sizeof one);
        }
    }
    for (size_t r = 0; r < SP_PANEL_ROWS; r++) rows[r] = file;
    sp_panel_pack(&o->layout, o->panel, rows);
    sp_free(file);
}

static void make(operands *o, sp_format format, size_t k, size_t width, uint64_t *random) {
    const size_t groups = k / SP_GROUP;
    sp_panel_layout_make(&o->layout, format, k);
    o->panel = sp_alloc(1, o->layout.bytes);
    o->width = width;
    o->a = sp_alloc(k, width);
    o->ad = sp_alloc(groups * width, sizeof(float));
    o->as = sp_alloc(groups * width, sizeof(float));
    o->an = sp_alloc(groups * width, sizeof(int32_t));
    fill_panel(o, random);
    for (size_t i = 0; i < k * width; i++) {
        const int8_t v = (int8_t)sp_test_random(random);
        o->a[i] = v == -128 ? -127 : v;
    }
    for (size_t g = 0; g < groups; g++) {
        for (size_t t = 0; t < width; t++) {
            int32_t sum = 0;
            for (size_t i = 0; i < SP_GROUP; i++) sum += o->a[((g * 8 + i / 4) * width + t) * 4 + i % 4];
            o->ad[g * width + t] = fabsf(uniform(random));
            o->an[g * width + t] = -sum;
            o->as[g * width + t] = o->ad[g * width + t] * (float)sum;
        }
    }
}

static void unmake(operands *o) { sp_free(o->panel), sp_free(o->a), sp_free(o->ad), sp_free(o->as), sp_free(o->an); }

static sp_gemm_q_args args_of(const operands *o, size_t first, size_t m, float *y) {
    return (sp_gemm_q_args){.w = o->panel,
                            .a = o->a + 4 * first,
                            .ad = o->ad + first,
                            .an = o->an + first,
                            .as = o->as + first,
                            .width = o->width,
                            .m = m,
                            .groups = o->layout.k / SP_GROUP,
                            .y = y,
                            .ldy = 20};
}

static bool runs_here(const sp_kernel *kernel) {
    sp_cpu cpu;
    sp_cpu_detect(&cpu);
    return sp_kernel_tiers_supported(&cpu) >> kernel->tier & 1;
}

static const sp_kernel *reference(sp_slot slot) {
    sp_kernel_set set;
    sp_kernel_select(&set, 1u << SP_TIER_REF);
    return set.k[slot];
}

static sp_format format_of(sp_slot slot) {
    return slot == SP_SLOT_GEMM_Q4S ? SP_Q4_0 : slot == SP_SLOT_GEMM_Q4A ? SP_Q4_1 : SP_Q8_0;
}

SP_TEST(gemm_quantised_kernels_equal_the_reference) {
    size_t count, ran = 0;
    const sp_kernel *table = sp_kernel_table(&count);
    for (size_t i = 0; i < count; i++) {
        const sp_kernel *kernel = &table[i];
        if (kernel->slot > SP_SLOT_GEMM_Q8S || kernel->tier == SP_TIER_REF || !runs_here(kernel)) continue;
        uint64_t random = 7;
        for (size_t width = 1; width <= TOKENS; width++) {
            operands o;
            make(&o, format_of(kernel->slot), 32 * (1 + width % 5), width, &random);
            for (size_t m = 1; m <= width; m++) {
                float want[TOKENS * 20], got[TOKENS * 20];
                memset(want, 0, sizeof want), memset(got, 0, sizeof got);
                const sp_gemm_q_args to_want = args_of(&o, width - m, m, want), to_got = args_of(&o, width - m, m, got);
                sp_test_label("%s width=%zu m=%zu", kernel->name, width, m);
                ((sp_gemm_q_fn)reference(kernel->slot)->fn)(&to_want);
                ((sp_gemm_q_fn)kernel->fn)(&to_got);
                SP_CHECK_FLOATS(got, want, TOKENS * 20);
                ran++;
            }
            unmake(&o);
        }
    }
    SP_CHECK(ran > 0 || sp_kernel_tiers_built() == 1u << SP_TIER_REF);
}

// Extreme integers: weights and activations at the ends of their ranges, where
// a saturating step would show.
SP_TEST(gemm_quantised_kernels_do_not_saturate) {
    size_t count;
    const sp_kernel *table = sp_kernel_table(&count);
    for (size_t i = 0; i < count; i++) {
        const sp_kernel *kernel = &table[i];
        if (kernel->slot > SP_SLOT_GEMM_Q8S || !runs_here(kernel)) continue;
        for (int sign = -1; sign <= 1; sign += 2) {
            uint64_t random = 9;
            operands o;
            make(&o, format_of(kernel->slot), 64, 1, &random);
            fill_extreme(&o);
            memset(o.a, (int8_t)(127 * sign), 64);
            for (size_t g = 0; g < 2; g++)
                o.ad[g] = 1.0f, o.an[g] = -32 * 127 * sign, o.as[g] = (float)(32 * 127 * sign);
            float got[20], want[16];
            const sp_gemm_q_args args = args_of(&o, 0, 1, got);
            ((sp_gemm_q_fn)kernel->fn)(&args);
            const int weight = kernel->slot == SP_SLOT_GEMM_Q8S ? -128 : kernel->slot == SP_SLOT_GEMM_Q4S ? 7 : 15;
            const float dot = (float)(weight * 127 * sign * 32),
                        minimum = kernel->slot == SP_SLOT_GEMM_Q4A ? o.as[0] : 0.0f;
            for (size_t r = 0; r < 16; r++) want[r] = 2.0f * (dot + minimum); // small integers: exact
            sp_test_label("%s sign=%d", kernel->name, sign);
            SP_CHECK_FLOATS(got, want, 16);
            unmake(&o);
        }
    }
}

// The reference against plain arithmetic on the decoded weights, in double.
SP_TEST(gemm_quantised_reference_means_what_the_formats_say) {
    for (sp_slot slot = SP_SLOT_GEMM_Q4S; slot <= SP_SLOT_GEMM_Q8S; slot++) {
        uint64_t random = 3;
        const size_t k = 160;
        operands o;
        make(&o, format_of(slot), k, 3, &random);
        float y[3 * 20], w[160];
        const sp_gemm_q_args args = args_of(&o, 0, 3, y);
        ((sp_gemm_q_fn)reference(slot)->fn)(&args);
        for (size_t r = 0; r < 16; r++) {
            sp_panel_row_f32(&o.layout, w, o.panel, r);
            for (size_t t = 0; t < 3; t++) {
                double want = 0.0;
                for (size_t i = 0; i < k; i++)
                    want += (double)w[i] * o.a[(i / 4 * 3 + t) * 4 + i % 4] * (double)o.ad[i / SP_GROUP * 3 + t];
                sp_test_label("slot=%d row=%zu token=%zu", (int)slot, r, t);
                SP_CHECK(fabs(want - (double)y[t * 20 + r]) < 1e-3 * (1.0 + fabs(want)));
            }
        }
        unmake(&o);
    }
}

// ---- float

enum { MOST = 128, DEPTH = 300, STRIPS = MOST / 16 };  // of rows and columns of a tile; of k

typedef struct floats {
    float *a, *b, *want, *got;
    uint16_t *half;
} floats;

// One kernel at one size, with both forms of b: strips one after the other (weight panels, keys), or side by side
// (values); from zero and from what y holds. Nothing beyond the result may be touched.
static void compare_floats(const floats *f, const sp_kernel *kernel, size_t m, size_t n, size_t k) {
    const bool f16 = kernel->slot == SP_SLOT_GEMM_F16;
    const size_t ldy = n + 8, count = m * ldy;
    for (int form = 0; form < 4; form++) {
        uint64_t random = 11;
        for (size_t j = 0; j < count; j++) f->want[j] = f->got[j] = uniform(&random);
        sp_gemm_f_args args = {.a = f->a,
                               .lda = k + 3,
                               .b = f16 ? (const void *)f->half : f->b,
                               .strip = form & 2 ? 16 : 16 * k,
                               .step = form & 2 ? n + 16 : 16,
                               .y = f->want,
                               .ldy = ldy,
                               .m = m,
                               .n = n,
                               .k = k,
                               .accumulate = form & 1};
        ((sp_gemm_f_fn)reference(kernel->slot)->fn)(&args);
        args.y = f->got;
        ((sp_gemm_f_fn)kernel->fn)(&args);
        sp_test_label("%s m=%zu n=%zu k=%zu form=%d", kernel->name, m, n, k, form);
        SP_CHECK_FLOATS(f->got, f->want, count);
    }
}

SP_TEST(gemm_float_kernels_equal_the_reference) {
    static const size_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 17, 31, 32, 50, 96, 128};
    static const size_t depths[] = {37, 1, 64, 8, 100, 4, 67, 32, DEPTH};
    size_t count, ran = 0, pick = 0;
    const sp_kernel *table = sp_kernel_table(&count);
    uint64_t random = 5;
    const size_t cells = STRIPS * 16 * DEPTH + MOST * DEPTH;
    const floats f = {.a = sp_alloc(MOST * (DEPTH + 3), sizeof(float)),
                      .b = sp_alloc(cells, sizeof(float)),
                      .want = sp_alloc(MOST * (MOST + 8), sizeof(float)),
                      .got = sp_alloc(MOST * (MOST + 8), sizeof(float)),
                      .half = sp_alloc(cells, sizeof(uint16_t))};
    for (size_t i = 0; i < MOST * (DEPTH + 3); i++) f.a[i] = uniform(&random);
    for (size_t i = 0; i < cells; i++) f.b[i] = uniform(&random), f.half[i] = sp_f32_to_f16(f.b[i]);
    for (size_t i = 0; i < count; i++) {
        const sp_kernel *kernel = &table[i];
        if (kernel->slot != SP_SLOT_GEMM_F32 && kernel->slot != SP_SLOT_GEMM_F16) continue;
        if (kernel->tier == SP_TIER_REF || !runs_here(kernel)) continue;
        SP_REQUIRE(kernel->mr <= MOST && kernel->nr <= MOST);
        for (size_t r = 0; r < sizeof rows / sizeof *rows && rows[r] <= kernel->mr; r++)
            for (size_t n = 16; n <= kernel->nr; n += 16, ran++)
                compare_floats(&f, kernel, rows[r], n, depths[pick++ % (sizeof depths / sizeof *depths)]);
    }
    SP_CHECK(ran > 0 || sp_kernel_tiers_built() == 1u << SP_TIER_REF);
    float *const blocks[] = {f.a, f.b, f.want, f.got};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) sp_free(blocks[i]);
    sp_free(f.half);
}
