// SPDX-License-Identifier: Apache-2.0
#include "probe/selftest.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cpu/topology.h"
#include "cpu/vector.h"
#include "probe/cases.h"
#include "probe/guard.h"
#include "thread/affinity.h"

enum {
    PAIRS_MAX = SP_GUARD_CHILDREN / 2,  // cores tested at a time
    VISIT_NS = 500000,                  // least time on a core: a few interruptions
};

// How far a child has come, in shared memory: what the parent knows of one that died.
typedef struct progress {
    _Alignas(SP_LINE) _Atomic uint32_t kernel;  // 1 + slot; 0 before the first
    _Atomic int32_t cpu;
    _Atomic uint32_t svl;
    _Atomic uint64_t calls;
    _Atomic bool wrong;
} progress;

typedef struct test {
    const sp_kernel_set *set;
    const sp_cases *cases;
    sp_topology machine;
    unsigned pairs;
} test;

const char *sp_trust_name(sp_trust trust) {
    static const char *const names[] = {[SP_TRUST_RIGHT] = "right",
                                        [SP_TRUST_WRONG] = "wrong bits",
                                        [SP_TRUST_TRAPPED] = "trapped",
                                        [SP_TRUST_LATE] = "timed out",
                                        [SP_TRUST_UNTESTED] = "untested"};
    return names[trust];
}

// ---- the child

// All kernels once; each gives the core away when it is done.
static bool one_round(const test *t, progress *mine) {
    uint64_t calls = 0;
    for (uint32_t slot = 0; slot < SP_SLOT_COUNT; slot++) {
        const sp_kernel *kernel = t->set->k[slot];
        if (kernel == NULL || !sp_cases_cover(kernel->slot)) continue;
        atomic_store(&mine->kernel, 1 + slot);
        if (!sp_cases_hold(t->cases, kernel, &calls)) return false;
        sched_yield();
    }
    atomic_fetch_add(&mine->calls, calls);
    return true;
}

static bool visit(const test *t, progress *mine, uint32_t cpu) {
    sp_cpuset here = {{0}};
    sp_cpuset_add(&here, cpu);
    atomic_store(&mine->cpu, sp_thread_pin(&here) == SP_PIN_DONE ? (int32_t)cpu : -1);
    const uint64_t until = sp_clock_ns() + VISIT_NS;
    do {
        if (!one_round(t, mine)) return false;
    } while (sp_clock_ns() < until);
    return true;
}

// Children 2i and 2i + 1 go together from core i to core i + pairs and so on.
static void walk(const void *ctx, void *shared, unsigned index) {
    const test *t = ctx;
    progress *mine = (progress *)shared + index;
    sp_svl_raise();
    atomic_store(&mine->svl, sp_svl());
    for (uint32_t i = index / 2; i < t->machine.allowed_count; i += t->pairs) {
        if (visit(t, mine, t->machine.allowed[i].cpu)) continue;
        atomic_store(&mine->wrong, true);
        return;
    }
}

// ---- the parent

typedef struct answer {
    const test *t;
    sp_selftest *out;
} answer;

// The worse of two answers counts; among equals the first child's.
static void read_child(const answer *a, const progress *from, const sp_child *child) {
    static const int badness[] = {
        [SP_TRUST_RIGHT] = 0, [SP_TRUST_LATE] = 1, [SP_TRUST_WRONG] = 2, [SP_TRUST_TRAPPED] = 3};
    sp_selftest *out = a->out;
    const uint32_t kernel = atomic_load(&from->kernel);
    const sp_trust trust = child->end == SP_END_TRAPPED ? SP_TRUST_TRAPPED
                           : child->end == SP_END_LATE  ? SP_TRUST_LATE
                           : atomic_load(&from->wrong)  ? SP_TRUST_WRONG
                                                        : SP_TRUST_RIGHT;
    out->calls += atomic_load(&from->calls);
    out->interruptions += child->interruptions;
    out->svl = atomic_load(&from->svl);
    if (badness[trust] <= badness[out->trust]) return;
    out->trust = trust;
    out->kernel = kernel > 0 ? a->t->set->k[kernel - 1]->name : NULL;
    out->signal = child->signal;
    out->cpu = atomic_load(&from->cpu);
}

static void read_all(void *out, const void *shared, const sp_child *children) {
    const answer *a = out;
    for (unsigned i = 0; i < 2 * a->t->pairs; i++) read_child(a, (const progress *)shared + i, &children[i]);
}

static bool empty(const sp_kernel_set *set) {
    for (int slot = 0; slot < SP_SLOT_COUNT; slot++)
        if (set->k[slot] != NULL && sp_cases_cover(set->k[slot]->slot)) return false;
    return true;
}

void sp_selftest_kernels(sp_kernel_set *set, sp_tier tier) {
    size_t count;
    const sp_kernel *table = sp_kernel_table(&count);
    *set = (sp_kernel_set){0};
    for (size_t i = 0; i < count; i++)
        if (table[i].tier == tier) set->k[table[i].slot] = &table[i];
}

sp_status sp_selftest_run(sp_selftest *out, const sp_kernel_set *set, uint64_t limit_ns) {
    const uint64_t start = sp_clock_ns();
    *out = (sp_selftest){.trust = SP_TRUST_UNTESTED, .cpu = -1};
    if (empty(set)) return SP_OK;
    sp_cases *cases;
    test *t = sp_alloc(1, sizeof *t);
    if (t == NULL) return SP_ERR_MEMORY;
    sp_status status = sp_cases_make(&cases);
    if (status == SP_OK) {
        t->set = set;
        t->cases = cases;
        sp_topology_detect(&t->machine);
        t->pairs = t->machine.allowed_count < PAIRS_MAX ? t->machine.allowed_count : PAIRS_MAX;
        out->trust = SP_TRUST_RIGHT;
        answer a = {t, out};
        status = sp_guard_run(
            &(sp_guard_spec){walk, t, 2 * t->pairs, 2 * t->pairs * sizeof(progress), limit_ns, read_all, &a});
        if (status == SP_ERR_UNSUPPORTED) {
            out->trust = SP_TRUST_UNTESTED;
            status = SP_OK;
        }
    }
    sp_cases_free(cases);
    sp_free(t);
    out->ns = sp_clock_ns() - start;
    return status;
}
