// SPDX-License-Identifier: Apache-2.0
// Linux and Android: the scheduler's CPU masks.
#ifdef __linux__
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "thread/affinity.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

// Thread 0 of the call means the calling thread, in glibc, musl and bionic alike.
sp_pin sp_thread_pin(const sp_cpuset *cpus) {
    cpu_set_t want, have;
    CPU_ZERO(&want);
    CPU_ZERO(&have);
    for (uint32_t cpu = 0; cpu < SP_CPUS_MAX && cpu < CPU_SETSIZE; cpu++)
        if (sp_cpuset_has(cpus, cpu)) CPU_SET(cpu, &want);
    if (sched_setaffinity(0, sizeof want, &want) != 0) return SP_PIN_REFUSED;
    if (sched_getaffinity(0, sizeof have, &have) != 0 || !CPU_EQUAL(&want, &have)) return SP_PIN_IGNORED;
    return SP_PIN_DONE;
}

void sp_thread_describe(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }
#endif
