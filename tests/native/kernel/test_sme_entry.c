// SPDX-License-Identifier: Apache-2.0
// What a kernel of the matrix unit owes its caller beyond the result: registers as a C function leaves them, both modes
// off, and another function's ZA saved where that function said (native/kernel/sme/entry.S).
#include <string.h>

#include "base/memory.h"
#include "kernel/kernel.h"
#include "test.h"

#ifdef SP_BUILT_SME

enum { M = 17, N = 32, K = 64, VECTOR_MOST = 256 };  // bytes of the longest vector

typedef struct operands {
    int8_t w[N * K], a[2 * 16 * K];
    float wd[N], ad[M], y[M * N], rows[M * K], strips[N * K];
    int32_t an[M];
} operands;

static bool runs_here(const sp_kernel *kernel) {
    sp_cpu cpu;
    sp_cpu_detect(&cpu);
    return SP_TIERS_SME >> kernel->tier & sp_kernel_tiers_supported(&cpu) >> kernel->tier & 1;
}

// ---- calls with known registers

typedef struct registers {
    uint64_t general[10], vector[8];  // x19..x28, d8..d15
} registers;

// Calls fn(args) with the registers that a function preserves as given; returns them as they are afterwards.
static registers call_with(void (*fn)(void), const void *args, const registers *before) {
    registers after;
    register const void *x0 __asm__("x0") = args;
    register void (*x9)(void) __asm__("x9") = fn;
    register const registers *x10 __asm__("x10") = before;
    register registers *x11 __asm__("x11") = &after;
    __asm__ volatile("str x11, [sp, #-16]!\n"
                     "ldp x19, x20, [x10]\n"
                     "ldp x21, x22, [x10, #16]\n"
                     "ldp x23, x24, [x10, #32]\n"
                     "ldp x25, x26, [x10, #48]\n"
                     "ldp x27, x28, [x10, #64]\n"
                     "ldp d8, d9, [x10, #80]\n"
                     "ldp d10, d11, [x10, #96]\n"
                     "ldp d12, d13, [x10, #112]\n"
                     "ldp d14, d15, [x10, #128]\n"
                     "blr x9\n"
                     "ldr x11, [sp], #16\n"
                     "stp x19, x20, [x11]\n"
                     "stp x21, x22, [x11, #16]\n"
                     "stp x23, x24, [x11, #32]\n"
                     "stp x25, x26, [x11, #48]\n"
                     "stp x27, x28, [x11, #64]\n"
                     "stp d8, d9, [x11, #80]\n"
                     "stp d10, d11, [x11, #96]\n"
                     "stp d12, d13, [x11, #112]\n"
                     "stp d14, d15, [x11, #128]\n"
                     : "+r"(x0), "+r"(x9), "+r"(x10), "+r"(x11)
                     :
                     : "memory", "cc", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x12", "x13", "x14", "x15",
                       "x16", "x17", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "v0",
                       "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15",
                       "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29",
                       "v30", "v31");
    return after;
}

// SVCR: bit 0 streaming mode, bit 1 ZA.
static uint64_t modes(void) {
    uint64_t svcr;
    __asm__ volatile("mrs %0, S3_3_C4_C2_2" : "=r"(svcr));
    return svcr;
}

typedef void probe(const sp_kernel *kernel, const void *args);

static void each_kernel(probe *run) {
    operands *o = sp_alloc(1, sizeof *o);
    SP_REQUIRE(o != NULL);
    const sp_gemm_r_args product = {o->w, o->a, o->wd, o->ad, o->an, M, N, K, o->y, N};
    const sp_gemm_f_args floats = {.a = o->rows,
                                   .lda = K,
                                   .b = o->strips,
                                   .strip = 16 * K,
                                   .step = 16,
                                   .y = o->y,
                                   .ldy = N,
                                   .m = M,
                                   .n = N,
                                   .k = K};
    size_t count, ran = 0;
    const sp_kernel *table = sp_kernel_table(&count);
    for (size_t i = 0; i < count; i++) {
        if (!runs_here(&table[i])) continue;
        const bool whole = table[i].slot == SP_SLOT_GEMM_Q8R;
        if (!whole && table[i].slot != SP_SLOT_GEMM_F32) continue;
        sp_test_label("%s", table[i].name);
        run(&table[i], whole ? (const void *)&product : &floats);
        ran++;
    }
    sp_free(o);
    if (ran == 0) sp_test_skip("no matrix unit");
}

static void registers_stay(const sp_kernel *kernel, const void *args) {
    registers before;
    for (size_t i = 0; i < 10; i++) before.general[i] = 0x1919191900000000u + i;
    for (size_t i = 0; i < 8; i++) before.vector[i] = 0x0808080800000000u + i;
    const registers after = call_with(kernel->fn, args, &before);
    SP_CHECK_BYTES(&after, &before, sizeof before);
    SP_CHECK_INT(modes(), 0);
}

SP_TEST(sme_entry_preserves_registers_and_leaves_both_modes) { each_kernel(registers_stay); }

// ---- another function's ZA

typedef struct lazy_block {
    void *buffer;
    uint16_t slices;
    uint8_t reserved[6];
} lazy_block;

// Turns ZA on, fills it with `slices` vectors from `from` and leaves it to be saved as `block` says.
static void leave_za(const uint8_t *from, const lazy_block *block) {
    __asm__ volatile(".arch_extension sme\n"
                     "smstart za\n"
                     "mov w12, #0\n"
                     "1: ldr za[w12, 0], [%[from]]\n"
                     "addsvl %[from], %[from], #1\n"
                     "add w12, w12, #1\n"
                     "cmp w12, %w[slices]\n"
                     "b.ne 1b\n"
                     "msr S3_3_C13_C0_5, %[block]\n"  // TPIDR2_EL0
                     ".arch_extension nosme\n"
                     : [from] "+r"(from)
                     : [slices] "r"((uint32_t)block->slices), [block] "r"(block)
                     : "memory", "cc", "x12");
}

static uint64_t left_za(void) {
    uint64_t tpidr2;
    __asm__ volatile("mrs %0, S3_3_C13_C0_5" : "=r"(tpidr2));
    return tpidr2;
}

static uint16_t vector_bytes(void) {
    uint64_t bytes;
    __asm__ volatile(".arch_extension sme\n rdsvl %0, #1\n .arch_extension nosme\n" : "=r"(bytes));
    return (uint16_t)bytes;
}

static void za_is_saved(const sp_kernel *kernel, const void *args) {
    const uint16_t bytes = vector_bytes();
    uint8_t *za = sp_alloc(VECTOR_MOST, VECTOR_MOST), *saved = sp_alloc(VECTOR_MOST, VECTOR_MOST);
    uint64_t random = 3;
    for (size_t i = 0; i < (size_t)bytes * bytes; i++) za[i] = (uint8_t)sp_test_random(&random);
    const lazy_block block = {.buffer = saved, .slices = bytes};
    leave_za(za, &block);
    ((void (*)(const void *))kernel->fn)(args);
    SP_CHECK_INT(left_za(), 0);
    SP_CHECK_INT(modes(), 0);
    SP_CHECK_BYTES(saved, za, (size_t)bytes * bytes);
    sp_free(za), sp_free(saved);
}

SP_TEST(sme_entry_saves_anothers_za) { each_kernel(za_is_saved); }

#endif
