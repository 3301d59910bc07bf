// SPDX-License-Identifier: Apache-2.0
// Code that may trap, hang or corrupt, run where that harms nobody: in child processes, within a time limit.
//
// Children are made by fork alone. There need be no program to start (an app on a phone has none), and the memory they
// read is the parent's. What runs after fork in a process with threads must be safe in a signal handler: no allocation,
// no locks, no stdio. So everything is made ready before, and a child only computes, makes a few system calls, writes
// into memory that it shares with the parent, and leaves without running anybody's exit functions. Within these limits
// macOS allows it too; iOS and some sandboxes allow no fork, which is an ordinary answer.
//
// A child keeps no core file and rings no crash reporter: it catches its own faults. It is interrupted by a timer
// thousands of times a second, so that whatever it computes has to survive signals and switches.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum sp_end {
    SP_END_DONE,  // returned
    SP_END_TRAPPED,  // by `signal`; 0: died, and nobody saw of what
    SP_END_LATE,  // was still at it when time was up
} sp_end;

typedef struct sp_child {
    sp_end end;
    int signal;
    uint64_t interruptions;
} sp_child;

enum { SP_GUARD_CHILDREN = 16 };

// What a child does; `shared` is zeroed memory that parent and children share.
typedef void (*sp_guard_fn)(const void *ctx, void *shared, unsigned index);

// Runs `fn` in `count` children at once, `shared_bytes` between them, and waits; what they left there is handed to
// `read` before it goes. SP_ERR_MEMORY; SP_ERR_ARGUMENT: more than SP_GUARD_CHILDREN; SP_ERR_UNSUPPORTED: no fork here.
typedef struct sp_guard_spec {
    sp_guard_fn fn;
    const void *ctx;
    unsigned count;
    size_t shared_bytes;
    uint64_t limit_ns;
    void (*read)(void *out, const void *shared, const sp_child *children);
    void *out;
} sp_guard_spec;

sp_status sp_guard_run(const sp_guard_spec *spec);
