// SPDX-License-Identifier: Apache-2.0
// Trap 2, the part that only running finds out: children that trap, hang or vanish harm nobody, and are told apart.
#include "probe/guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "probe/handlers.h"
#include "test.h"

enum { CHILDREN = 4, MS = 1000000 };

typedef struct answer {
    sp_child child[CHILDREN];
    _Atomic int written[CHILDREN];
    int reads;
} answer;

static void read_answer(void *out, const void *shared, const sp_child *children) {
    answer *a = out;
    memcpy(a->child, children, sizeof a->child);
    memcpy(a->written, shared, sizeof a->written);
    a->reads++;
}

static answer run(sp_guard_fn fn, const void *ctx, uint64_t limit_ms) {
    answer a = {0};
    const sp_guard_spec spec = {fn, ctx, CHILDREN, sizeof a.written, limit_ms * MS, read_answer, &a};
    SP_CHECK_INT(sp_guard_run(&spec), SP_OK);
    SP_CHECK_INT(a.reads, 1);
    return a;
}

static void spin_ms(uint64_t ms) {
    const uint64_t until = sp_clock_ns() + ms * MS;
    while (sp_clock_ns() < until) continue;
}

// Each child its own way.
static void differ(const void *ctx, void *shared, unsigned index) {
    atomic_store((_Atomic int *)shared + index, *(const int *)ctx + (int)index);
    if (index == 1) raise(SIGILL);
    if (index == 2)
        for (;;) spin_ms(1000);
    if (index == 3) kill(getpid(), SIGKILL);
    spin_ms(20);
}

static const int seven = 7;

static void check_different(const answer *a) {
    SP_CHECK_INT(a->child[0].end, SP_END_DONE);
    SP_CHECK(a->child[0].interruptions > 0 || !sp_handlers_return());
    SP_CHECK_INT(a->child[1].end, SP_END_TRAPPED);
    SP_CHECK_INT(a->child[1].signal, SIGILL);
    SP_CHECK_INT(a->child[2].end, SP_END_LATE);
    for (int i = 0; i < CHILDREN; i++) SP_CHECK_INT(a->written[i], 7 + i);
}

SP_TEST(trap2_guard_tells_ends_apart) {
    const uint64_t start = sp_clock_ns();
    const answer a = run(differ, &seven, 300);
    check_different(&a);
    SP_CHECK_INT(a.child[3].end, SP_END_LATE);  // killed from outside: nothing is learnt of the code
    SP_CHECK(sp_clock_ns() - start < (uint64_t)20000 * MS);
}

// Deaf to its own alarm: the parent's patience ends too.
static void deafen(const void *ctx, void *shared, unsigned index) {
    sigset_t all;
    (void)ctx, (void)shared, (void)index;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (;;) spin_ms(1000);
}

SP_TEST(trap2_guard_kills_what_does_not_hear) {
    const answer a = run(deafen, NULL, 100);
    for (int i = 0; i < CHILDREN; i++) SP_CHECK_INT(a.child[i].end, SP_END_LATE);
}

// Applications that have their children reaped by the system, or by a handler that waits for any.
static void take_all(int signal) {
    const int before = errno;
    (void)signal;
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
    errno = before;
}

SP_TEST(trap2_guard_needs_no_wait_status) {
    const struct sigaction ways[] = {{.sa_handler = SIG_IGN}, {.sa_handler = take_all}};
    for (int i = 0; i < (sp_handlers_return() ? 2 : 1); i++) {
        struct sigaction before;
        sp_test_label("way %d", i);
        sigaction(SIGCHLD, &ways[i], &before);
        const answer a = run(differ, &seven, 300);
        sigaction(SIGCHLD, &before, NULL);
        check_different(&a);
        SP_CHECK(a.child[3].end != SP_END_DONE);
    }
}

// The application's handlers and its exit functions do not run in a child.
static pid_t home;
static _Atomic int strays;

static void note_stray(int signal) {
    (void)signal;
    if (getpid() != home) strays++;
}

static void signal_itself(const void *ctx, void *shared, unsigned index) {
    (void)ctx;
    kill(getpid(), SIGINT);
    kill(getpid(), SIGTERM);
    spin_ms(5);
    atomic_store((_Atomic int *)shared + index, strays);
}

SP_TEST(trap2_guard_keeps_the_applications_handlers_out) {
    struct sigaction ours = {.sa_handler = note_stray}, before[2];
    home = getpid();
    sigaction(SIGINT, &ours, &before[0]);
    sigaction(SIGTERM, &ours, &before[1]);
    const answer a = run(signal_itself, NULL, 2000);
    sigaction(SIGINT, &before[0], NULL);
    sigaction(SIGTERM, &before[1], NULL);
    for (int i = 0; i < CHILDREN; i++) SP_CHECK(a.child[i].end == SP_END_DONE && a.written[i] == 0);
}

SP_TEST(guard_refuses_odd_counts) {
    answer a = {0};
    sp_guard_spec spec = {differ, &seven, 0, sizeof a.written, MS, read_answer, &a};
    SP_CHECK_INT(sp_guard_run(&spec), SP_ERR_ARGUMENT);
    spec.count = SP_GUARD_CHILDREN + 1;
    SP_CHECK_INT(sp_guard_run(&spec), SP_ERR_ARGUMENT);
    SP_CHECK_INT(a.reads, 0);
}
