// SPDX-License-Identifier: Apache-2.0
#include "probe/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

enum { TICK_US = 100, LOOK_NS = 200000 };

// A child's own report. Two words that are written once, by itself, and read when it is gone.
typedef struct report {
    _Alignas(SP_LINE) _Atomic int end;  // 1 + sp_end; 0: it has said nothing
    _Atomic int signal;
    _Atomic bool ready;     // it has been interrupted once, and gone on
    _Atomic uint64_t interruptions;
} report;

// ---- the child; its signal handlers know it by these

static report *mine;
static uint64_t deadline;
static bool ticking;

static void leave(sp_end end, int signal) {
    atomic_store(&mine->signal, signal);
    atomic_store(&mine->end, 1 + (int)end);
    _Exit(0);
}

static void on_fault(int signal) { leave(SP_END_TRAPPED, signal); }

// Armed anew by each tick, not periodic: where a tick takes longer than a period, nothing else would ever run.
static void arm(void) {
    if (ticking) setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, TICK_US}}, NULL);
}

static void on_tick(int signal) {
    const int before = errno;
    (void)signal;
    atomic_fetch_add_explicit(&mine->interruptions, 1, memory_order_relaxed);
    if (sp_clock_ns() >= deadline) leave(SP_END_LATE, 0);
    arm();
    errno = before;
}

static const int faults[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP, SIGSYS, SIGABRT};

// The parent blocked all signals: its own handlers must not run in a child.
static void take_signals(void) {
    struct sigaction fault = {.sa_handler = on_fault}, tick = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    sigset_t heard;
    sigemptyset(&heard);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        sigaction(faults[i], &fault, NULL);
        sigaddset(&heard, faults[i]);
    }
    sigaction(SIGALRM, &tick, NULL);
    sigaddset(&heard, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &heard, NULL);
    if (ticking) raise(SIGALRM);
    atomic_store(&mine->interruptions, 0);
    atomic_store(&mine->ready, true);
}

static void live(const sp_guard_spec *spec, void *shared, report *own, unsigned index, bool ticks) {
    mine = own;
    ticking = ticks;
    deadline = sp_clock_ns() + spec->limit_ns;
    take_signals();
    spec->fn(spec->ctx, shared, index);
    leave(SP_END_DONE, 0);
}

// ---- the parent

static unsigned start(const sp_guard_spec *spec, void *shared, report *reports, bool ticks, pid_t *pids) {
    sigset_t all, before;
    unsigned started = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; started < spec->count; started++) {
        pids[started] = fork();
        if (pids[started] == 0) live(spec, shared, &reports[started], started, ticks);
        if (pids[started] < 0) break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

// How a child ended, as the parent sees it.
typedef struct outcome {
    int status;   // of waitpid; 0 where somebody else has taken it: an application that waits for any child, or that
                  // ignores SIGCHLD. Then the child's own report is all there is
    bool killed;  // by us, when time was up
} outcome;

static outcome reap(pid_t pid, uint64_t until) {
    outcome end = {0};
    for (;;) {
        const pid_t gone = waitpid(pid, &end.status, WNOHANG);
        if (gone == pid || (gone < 0 && errno != EINTR)) return end;
        if (gone == 0 && sp_clock_ns() >= until) end.killed = kill(pid, SIGKILL) == 0;
        nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
    }
}

static sp_child judge(const report *own, outcome end) {
    sp_child child = {.signal = atomic_load(&own->signal), .interruptions = atomic_load(&own->interruptions)};
    const int said = atomic_load(&own->end), signal = WIFSIGNALED(end.status) ? WTERMSIG(end.status) : 0;
    if (said > 0) {
        child.end = (sp_end)(said - 1);
    } else if (end.killed || signal == SIGKILL) {
        child.end = SP_END_LATE;  // too stuck to notice its own deadline, or the system was short of memory
    } else {
        child.end = SP_END_TRAPPED;
        child.signal = signal;
    }
    return child;
}

static size_t in_lines(size_t bytes) { return (bytes + SP_LINE - 1) / SP_LINE * SP_LINE; }

// One set of children. False where the system makes none.
static bool run(const sp_guard_spec *spec, void *shared, report *reports, bool ticks, sp_child *children) {
    pid_t pids[SP_GUARD_CHILDREN];
    const uint64_t until = sp_clock_ns() + spec->limit_ns + spec->limit_ns / 4;  // the child's own alarm comes first
    const unsigned started = start(spec, shared, reports, ticks, pids);
    const bool all = started == spec->count;
    for (unsigned i = 0; i < started; i++) children[i] = judge(&reports[i], reap(pids[i], all ? until : 0));
    return all;
}

static bool none_was_ready(const report *reports, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (atomic_load(&reports[i].ready)) return false;
    return true;
}

sp_status sp_guard_run(const sp_guard_spec *spec) {
    if (spec->count < 1 || spec->count > SP_GUARD_CHILDREN) return SP_ERR_ARGUMENT;
    const size_t head = in_lines(spec->count * sizeof(report)), bytes = head + in_lines(spec->shared_bytes);
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return SP_ERR_MEMORY;
    report *reports = base;
    void *shared = (char *)base + head;
    sp_child children[SP_GUARD_CHILDREN];
    bool all = run(spec, shared, reports, true, children);
    // Where no handler can return (QEMU 11 with SME and without SVE), `fn` never began: again, without ticks.
    if (all && none_was_ready(reports, spec->count)) {
        memset(base, 0, bytes);
        all = run(spec, shared, reports, false, children);
    }
    if (all) spec->read(spec->out, shared, children);
    munmap(base, bytes);
    return all ? SP_OK : SP_ERR_UNSUPPORTED;
}
