// SPDX-License-Identifier: Apache-2.0
// Times one micro-kernel of the registry, by name, beside the integer peak of its tier on the same core.
//
//     sp_kernel_rate NAME M N K PAIRS
//
// prints PAIRS lines "rate peak", in units of work and int8 operations per second. Each line times the peak's loop and
// the kernel one after the other, for some milliseconds of the thread's own time each: processes that share the core do
// not count, and clocks and neighbours change slowly enough to touch both, so their ratio holds where neither figure
// does. What is work depends on the kernel:
//
//   product, int8 or float    2 * M * N * K operations
//   expansion                 N * K weights, panel after panel from memory into one buffer of K * 64 bytes
//   quantisation of rows      M * K values
//
// Operands are as large as the shape says, so they lie where they would lie in use: a small N keeps weights in the
// second-level cache, M * K decides where activations stream from.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "kernel/kernel.h"
#include "layout/panel.h"
#include "probe/probe.h"
#include "../named_kernel.h"

#define SLICE_NS 5000000u
#define BATCH_NS 100000u

typedef struct job {
    const sp_kernel *kernel;
    size_t m, n, k;
    void (*run)(const struct job *);  // all the work once
    double work;
    sp_panel_layout layout;  // expansion
    uint8_t *w, *a;
    float *x, *y;  // x serves as all scales, factors and float operands
    int32_t *sums;
} job;

static void multiply_rowwise(const job *j) {
    const sp_gemm_r_args args = {.w = (const int8_t *)j->w,
                                 .a = (const int8_t *)j->a,
                                 .wd = j->x,
                                 .ad = j->x,
                                 .an = j->sums,
                                 .m = j->m,
                                 .n = j->n,
                                 .k = j->k,
                                 .y = j->y,
                                 .ldy = j->n};
    ((sp_gemm_r_fn)j->kernel->fn)(&args);
}

static void multiply_float(const job *j) {
    const size_t mr = j->kernel->mr, nr = j->kernel->nr;
    for (size_t c = 0; c < j->n; c += nr) {
        for (size_t r = 0; r < j->m; r += mr) {
            const sp_gemm_f_args args = {.a = j->x + r * j->k,
                                         .lda = j->k,
                                         .b = j->w + c * j->k * sizeof(float),
                                         .strip = 16 * j->k,
                                         .step = 16,
                                         .y = j->y + r * j->n + c,
                                         .ldy = j->n,
                                         .m = j->m - r < mr ? j->m - r : mr,
                                         .n = j->n - c < nr ? j->n - c : nr,
                                         .k = j->k,
                                         .accumulate = true};
            ((sp_gemm_f_fn)j->kernel->fn)(&args);
        }
    }
}

static void expand(const job *j) {
    for (size_t panel = 0; panel < j->n / 16; panel++) {
        const sp_expand_r_args args = {.dst = (int8_t *)j->a + panel % 4 * 16 * j->k,
                                       .w = j->w + panel * j->layout.bytes,
                                       .inv = j->x,
                                       .s = j->x,
                                       .k = j->k};
        ((sp_expand_r_fn)j->kernel->fn)(&args);
    }
}

static void quantise(const job *j) {
    for (size_t t = 0; t < j->m; t++) {
        const sp_quant_row_args args = {.x = j->x + t * j->k,
                                        .u = j->x,
                                        .n = j->k,
                                        .q = (int8_t *)j->a + t / 16 * 16 * j->k + t % 16 * 4,
                                        .d = j->y,
                                        .neg = j->sums};
        ((sp_quant_row_fn)j->kernel->fn)(&args);
    }
}

static bool prepare(job *j) {
    const size_t tokens = (j->m + 15) / 16 * 16;
    const double product = 2.0 * (double)j->m * (double)j->n * (double)j->k;
    size_t width = 1;  // bytes of a weight
    sp_format format = SP_Q8_0;
    switch (j->kernel->slot) {
        case SP_SLOT_GEMM_Q8R: j->run = multiply_rowwise, j->work = product; break;
        case SP_SLOT_GEMM_F32: j->run = multiply_float, j->work = product, width = sizeof(float); break;
        case SP_SLOT_EXPAND_Q4S: format = SP_Q4_0, j->run = expand; break;
        case SP_SLOT_EXPAND_Q4A: format = SP_Q4_1, j->run = expand; break;
        case SP_SLOT_EXPAND_Q8S: j->run = expand; break;
        case SP_SLOT_QUANT_ROW: j->run = quantise, j->work = (double)j->m * (double)j->k; break;
        default: return false;
    }
    if (j->run != multiply_float && j->k % SP_GROUP) return false;
    if (j->run == expand) {
        if (sp_panel_layout_make(&j->layout, format, j->k) != SP_OK) return false;
        j->work = (double)j->n * (double)j->k;
    }
    const size_t panels = j->n / 16, weights = j->run == expand ? panels * j->layout.bytes : j->n * j->k * width;
    const size_t floats = j->run == multiply_rowwise ? j->m + j->n + j->k : j->m * j->k + j->n + j->k;
    j->w = sp_alloc(weights + 1, 1), j->a = sp_alloc(tokens + 64, j->k);
    j->x = sp_alloc(floats, sizeof(float)), j->y = sp_alloc(j->m * j->n + 1, sizeof(float));
    j->sums = sp_alloc(tokens, sizeof(int32_t));
    if (!j->w || !j->a || !j->x || !j->y || !j->sums) return false;
    // Small ordinary numbers whatever reads them: as bytes, as float16 (2^-10), as float32.
    for (size_t i = 0; i < weights; i++) j->w[i] = (uint8_t)(i % 2 ? 0x14 : 0);
    for (size_t i = 0; i < tokens * j->k; i++) j->a[i] = (uint8_t)(i % 7);
    for (size_t i = 0; i < floats; i++) j->x[i] = 0.01f * (float)(i % 13 + 1);
    return true;
}

static uint64_t own_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Work per second over a slice. The clock is a system call, so it is read once for `times` runs.
static double kernel_rate(const job *j, long times) {
    const uint64_t start = own_ns();
    double work = 0.0;
    uint64_t now;
    do {
        for (long i = 0; i < times; i++) j->run(j);
        work += j->work * (double)times;
        now = own_ns();
    } while (now - start < SLICE_NS);
    return work * 1e9 / (double)(now - start);
}

static double peak_rate(sp_probe_loop loop) {
    const uint64_t start = own_ns();
    double work = 0.0;
    uint64_t now;
    do {
        work += (double)loop(100000);
        now = own_ns();
    } while (now - start < SLICE_NS);
    return work * 1e9 / (double)(now - start);
}

// Runs that take long enough to be timed together.
static long batch(const job *j) {
    for (long times = 1;; times *= 2) {
        const uint64_t start = own_ns();
        for (long i = 0; i < times; i++) j->run(j);
        if (own_ns() - start > BATCH_NS) return times;
    }
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: sp_kernel_rate NAME M N K PAIRS\n");
        return 2;
    }
    job j = {.kernel = sp_named_kernel(argv[1])};
    j.m = strtoul(argv[2], NULL, 10), j.n = strtoul(argv[3], NULL, 10), j.k = strtoul(argv[4], NULL, 10);
    const sp_probe_loop loop = j.kernel ? sp_probe_int8_loop(j.kernel->tier) : NULL;
    if (!loop || !j.m || !j.n || j.n % 16 || !j.k || !prepare(&j)) {
        fprintf(stderr, "sp_kernel_rate: cannot time %s at %s x %s x %s\n", argv[1], argv[2], argv[3], argv[4]);
        return 1;
    }
    const long times = batch(&j);
    for (long pair = strtol(argv[5], NULL, 10); pair > 0; pair--) {
        const double peak = peak_rate(loop);
        printf("%.6g %.6g\n", kernel_rate(&j, times), peak);
    }
    return 0;
}
