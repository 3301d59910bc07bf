// SPDX-License-Identifier: Apache-2.0
// Calls one micro-kernel of the registry, by name, a given number of times on operands of a given shape, so that
// count.py can count the instructions of a call in the emulator.
//
//     sp_count NAME TIMES [m=4] [n=16] [k=2048] [width=4] [strip=16] [step=16]
//
// Two runs that differ in TIMES alone differ by whole calls: start-up and the making of operands cancel out. The loop
// around the calls is `call`, which count.py leaves out by its name: what remains lies between entry and exit of the
// kernel. Operands are zeros: kernels that count do not look at their values.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/kernel.h"
#include "layout/panel.h"
#include "../named_kernel.h"

typedef struct shape {
    size_t m, n, k;
    size_t width;        // quantised activations: tokens of the panel
    size_t strip, step;  // float products: as in sp_gemm_f_args
} shape;

// The extent of each operand is rounded up to whole panels of 16 tokens.
static size_t whole(size_t tokens) { return (tokens + 15) / 16 * 16; }

static __attribute__((noinline)) void call(void (*fn)(void), const void *args, long times) {
    for (long i = 0; i < times; i++) ((void (*)(const void *))fn)(args);
}

static void call_q(const sp_kernel *kernel, const shape *s, long times) {
    const size_t groups = s->k / SP_GROUP, tokens = groups * whole(s->width);
    const sp_format format = kernel->slot == SP_SLOT_GEMM_Q4S   ? SP_Q4_0
                             : kernel->slot == SP_SLOT_GEMM_Q4A ? SP_Q4_1
                                                                : SP_Q8_0;
    sp_panel_layout layout;
    if (sp_panel_layout_make(&layout, format, s->k) != SP_OK) abort();
    const sp_gemm_q_args args = {.w = sp_alloc(1, layout.bytes),
                                 .a = sp_alloc(s->k, whole(s->width)),
                                 .ad = sp_alloc(tokens, sizeof(float)),
                                 .an = sp_alloc(tokens, sizeof(int32_t)),
                                 .as = sp_alloc(tokens, sizeof(float)),
                                 .width = s->width,
                                 .m = s->m,
                                 .groups = groups,
                                 .y = sp_alloc(whole(s->m) * 16, sizeof(float)),
                                 .ldy = 16};
    call(kernel->fn, &args, times);
}

static void call_r(const sp_kernel *kernel, const shape *s, long times) {
    const sp_gemm_r_args args = {.w = sp_alloc(s->n, s->k),
                                 .a = sp_alloc(whole(s->m), s->k),
                                 .wd = sp_alloc(s->n, sizeof(float)),
                                 .ad = sp_alloc(s->m, sizeof(float)),
                                 .an = sp_alloc(s->m, sizeof(int32_t)),
                                 .m = s->m,
                                 .n = s->n,
                                 .k = s->k,
                                 .y = sp_alloc(s->m * s->n, sizeof(float)),
                                 .ldy = s->n};
    call(kernel->fn, &args, times);
}

// `strip` and `step` say what b is: strips of k x 16 one after the other (weights, keys) or rows of n (values).
static void call_f(const sp_kernel *kernel, const shape *s, long times) {
    const sp_gemm_f_args args = {.a = sp_alloc(s->m * s->k, sizeof(float)),
                                 .lda = s->k,
                                 .b = sp_alloc(s->n * s->k, sizeof(float)),
                                 .strip = s->strip,
                                 .step = s->step,
                                 .y = sp_alloc(s->m * s->n, sizeof(float)),
                                 .ldy = s->n,
                                 .m = s->m,
                                 .n = s->n,
                                 .k = s->k,
                                 .accumulate = false};
    call(kernel->fn, &args, times);
}

static bool read_shape(shape *s, int count, char *const *words) {
    const struct {
        const char *name;
        size_t *value;
    } fields[] = {{"m=", &s->m},         {"n=", &s->n},         {"k=", &s->k},
                  {"width=", &s->width}, {"strip=", &s->strip}, {"step=", &s->step}};
    for (int i = 0; i < count; i++) {
        size_t field = 0;
        while (field < 6 && strncmp(words[i], fields[field].name, strlen(fields[field].name)) != 0) field++;
        if (field == 6) return false;
        *fields[field].value = strtoul(strchr(words[i], '=') + 1, NULL, 10);
    }
    return true;
}

int main(int argc, char **argv) {
    shape s = {.m = 1, .n = 16, .k = 64};
    if (argc < 3 || !read_shape(&s, argc - 3, argv + 3)) {
        fprintf(stderr, "usage: sp_count NAME TIMES [m=|n=|k=|width=|strip=|step=NUMBER]...\n");
        return 2;
    }
    const sp_kernel *kernel = sp_named_kernel(argv[1]);
    if (!kernel) {
        fprintf(stderr, "sp_count: no kernel %s was built that this processor can run\n", argv[1]);
        return 1;
    }
    if (s.width == 0) s.width = s.m;
    if (s.strip == 0) s.strip = 16 * s.k, s.step = 16;
    const long times = strtol(argv[2], NULL, 10);
    switch (kernel->slot) {
        case SP_SLOT_GEMM_Q4S:
        case SP_SLOT_GEMM_Q4A:
        case SP_SLOT_GEMM_Q8S: call_q(kernel, &s, times); return 0;
        case SP_SLOT_GEMM_Q8R: call_r(kernel, &s, times); return 0;
        case SP_SLOT_GEMM_F32:
        case SP_SLOT_GEMM_F16: call_f(kernel, &s, times); return 0;
        default: fprintf(stderr, "sp_count: %s makes no matrix product\n", argv[1]); return 1;
    }
}
