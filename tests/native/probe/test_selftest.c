// SPDX-License-Identifier: Apache-2.0
// Trap 3: the self-test trusts kernels that are right, and catches each kind of kernel that is not. The kinds are made
// here, around a right kernel of this machine; on one with a matrix unit its kernels are under test as well.
#include "probe/selftest.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "probe/cases.h"
#include "probe/handlers.h"
#include "test.h"

#define LIMIT ((uint64_t)30000000000)  // sanitizers and emulators are slow

static uint32_t tiers_here(void) {
    sp_cpu cpu;
    sp_cpu_detect(&cpu);
    return sp_kernel_tiers_supported(&cpu) & sp_kernel_tiers_built();
}

static sp_gemm_r_fn right;  // the best kernel of the product that the wrong ones imitate

static const sp_kernel_set *set_of(const sp_kernel *kernel) {
    static sp_kernel_set set;
    sp_kernel_set best;
    sp_kernel_select(&best, tiers_here());
    right = (sp_gemm_r_fn)best.k[SP_SLOT_GEMM_Q8R]->fn;
    set = (sp_kernel_set){0};
    set.k[SP_SLOT_GEMM_Q8R] = kernel;
    return &set;
}

static sp_selftest judge(sp_gemm_r_fn fn, uint64_t limit) {
    static sp_kernel kernel;
    kernel = (sp_kernel){"sp_test_kernel", SP_SLOT_GEMM_Q8R, SP_TIER_SME, 16, 16, (void (*)(void))fn};
    sp_selftest result;
    SP_CHECK_INT(sp_selftest_run(&result, set_of(&kernel), limit), SP_OK);
    return result;
}

static void flip(float *x) {
    uint32_t bits;
    memcpy(&bits, x, sizeof bits);
    bits ^= 1;
    memcpy(x, &bits, sizeof bits);
}

// ---- right ones

static bool covered(const sp_kernel_set *set) {
    bool any = false;
    for (int slot = 0; slot < SP_SLOT_COUNT; slot++) any |= set->k[slot] != NULL && sp_cases_cover(set->k[slot]->slot);
    return any;
}

SP_TEST(trap3_every_tier_of_this_machine_is_trusted) {
    for (int tier = SP_TIER_REF; tier < SP_TIER_COUNT; tier++) {
        if (!(tiers_here() >> tier & 1)) continue;
        sp_kernel_set set;
        sp_selftest result;
        sp_test_label("%s", sp_tier_name((sp_tier)tier));
        sp_selftest_kernels(&set, (sp_tier)tier);
        if (!covered(&set)) continue;
        SP_REQUIRE(sp_selftest_run(&result, &set, LIMIT) == SP_OK);
        SP_CHECK_TEXT(sp_trust_name(result.trust), "right");
        SP_CHECK(result.kernel == NULL && result.calls > 0 && result.ns > 0);
        SP_CHECK(result.interruptions > 0 || !sp_handlers_return());
    }
}

// Signals and switches in the middle of kernels (trap 7) are part of the very same test.
SP_TEST(trap7_kernels_survive_signals_and_switches) {
    sp_kernel_set set;
    sp_selftest result = {0};
    if (!sp_handlers_return()) {
        sp_test_skip("no signal handler can return here");
        return;
    }
    sp_kernel_select(&set, tiers_here());
    SP_REQUIRE(sp_selftest_run(&result, &set, LIMIT) == SP_OK);
    SP_CHECK_INT(result.trust, SP_TRUST_RIGHT);
    SP_CHECK(result.interruptions > 2);
}

SP_TEST(trap1_self_test_of_one_tier_runs_no_other) {
    for (int tier = 0; tier < SP_TIER_COUNT; tier++) {
        sp_kernel_set set;
        sp_selftest_kernels(&set, (sp_tier)tier);
        for (int slot = 0; slot < SP_SLOT_COUNT; slot++)
            SP_CHECK(set.k[slot] == NULL || (set.k[slot]->tier == (sp_tier)tier && (int)set.k[slot]->slot == slot));
    }
}

SP_TEST(trap3_every_matrix_kernel_has_cases) {
    size_t count;
    const sp_kernel *table = sp_kernel_table(&count);
    for (size_t i = 0; i < count; i++) {
        sp_test_label("%s", table[i].name);
        SP_CHECK(!(SP_TIERS_SME >> table[i].tier & 1) || sp_cases_cover(table[i].slot));
    }
}

SP_TEST(selftest_of_nothing_is_untested) {
    const sp_kernel_set none = {0};
    sp_selftest result;
    SP_CHECK_INT(sp_selftest_run(&result, &none, LIMIT), SP_OK);
    SP_CHECK_INT(result.trust, SP_TRUST_UNTESTED);
}

// ---- wrong ones

static void last_bit(const sp_gemm_r_args *args) {
    right(args);
    flip(&args->y[(args->m - 1) * args->ldy + args->n - 1]);
}

static void now_and_then(const sp_gemm_r_args *args) {
    static int calls;
    right(args);
    if (++calls % 23 == 0) flip(&args->y[0]);
}

static void ragged_rows_left_out(const sp_gemm_r_args *args) {
    sp_gemm_r_args whole = *args;
    whole.m = args->m > 16 ? args->m / 16 * 16 : args->m;
    right(&whole);
}

static void beyond_the_edge(const sp_gemm_r_args *args) {
    right(args);
    args->y[args->n] = 0.0f;
}

static void one_row_for_all(const sp_gemm_r_args *args) {
    sp_gemm_r_args folded = *args;
    folded.ldy = 0;
    right(&folded);
}

SP_TEST(trap3_wrong_bits_are_caught) {
    const sp_gemm_r_fn kernels[] = {last_bit, now_and_then, ragged_rows_left_out, beyond_the_edge, one_row_for_all};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        sp_test_label("kernel %zu", i);
        const sp_selftest result = judge(kernels[i], LIMIT);
        SP_CHECK_TEXT(sp_trust_name(result.trust), "wrong bits");
        SP_CHECK(result.kernel != NULL && strcmp(result.kernel, "sp_test_kernel") == 0);
    }
}

// One wrong kernel among right ones is named.
SP_TEST(trap3_wrong_kernel_in_a_right_set_is_named) {
    static const sp_kernel wrong = {"sp_wrong", SP_SLOT_GEMM_Q8R, SP_TIER_REF, 16, 16, (void (*)(void))last_bit};
    sp_kernel_set set;
    sp_selftest result;
    set_of(&wrong);
    sp_kernel_select(&set, tiers_here());
    set.k[SP_SLOT_GEMM_Q8R] = &wrong;
    SP_REQUIRE(sp_selftest_run(&result, &set, LIMIT) == SP_OK);
    SP_CHECK_INT(result.trust, SP_TRUST_WRONG);
    SP_CHECK_TEXT(result.kernel, "sp_wrong");
}

static void traps(const sp_gemm_r_args *args) {
    static int calls;
    right(args);
    if (++calls == 3) raise(SIGILL);
}

static void hangs(const sp_gemm_r_args *args) {
    static volatile bool forever = true;
    while (forever) continue;
    right(args);
}

SP_TEST(trap2_a_kernel_that_traps_or_hangs_is_caught) {
    const sp_selftest trapped = judge(traps, LIMIT), late = judge(hangs, 200000000);
    SP_CHECK_TEXT(sp_trust_name(trapped.trust), "trapped");
    SP_CHECK_INT(trapped.signal, SIGILL);
    SP_CHECK_TEXT(trapped.kernel, "sp_test_kernel");
    SP_CHECK_TEXT(sp_trust_name(late.trust), "timed out");
    SP_CHECK_TEXT(late.kernel, "sp_test_kernel");
}

// What a virtual machine that advertises too much is like: built kernels, run where their instructions do not exist.
SP_TEST(trap2_kernels_of_absent_instructions_trap_in_the_child_alone) {
    uint32_t absent = SP_TIERS_SME & sp_kernel_tiers_built() & ~tiers_here();
    if (absent == 0) {
        sp_test_skip("this machine has the matrix unit that was built for, or none was");
        return;
    }
    for (int tier = 0; tier < SP_TIER_COUNT; tier++) {
        sp_kernel_set set;
        sp_selftest result;
        sp_selftest_kernels(&set, (sp_tier)tier);
        if (!(absent >> tier & 1) || !covered(&set)) continue;
        sp_test_label("%s", sp_tier_name((sp_tier)tier));
        SP_REQUIRE(sp_selftest_run(&result, &set, LIMIT) == SP_OK);
        SP_CHECK_TEXT(sp_trust_name(result.trust), "trapped");
        SP_CHECK_INT(result.signal, SIGILL);
        SP_CHECK(result.kernel != NULL);
    }
}
