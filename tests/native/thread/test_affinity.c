// SPDX-License-Identifier: Apache-2.0
// Trap 11 of the schedulers: a system may refuse a mask, or accept it and not apply it, as Android does. Both kinds of
// system are made here from this one: in a child process, a filter answers the call in the kernel's place.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "thread/affinity.h"

#ifdef __linux__
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { NO_FILTER = 99 };

// From now on sched_setaffinity returns `error` (0: success) without doing anything.
static bool replace_setaffinity(int error) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// What a pinning to the first allowed CPU gives in a child whose system answers with `error`; -1: the kernel's own.
static int pin_in_child(int error, const sp_cpuset *cpus) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (error >= 0 && !replace_setaffinity(error)) _exit(NO_FILTER);
        _exit(sp_thread_pin(cpus));
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

SP_TEST(affinity_is_read_back) {
    sp_topology machine;
    sp_topology_detect(&machine);
    if (machine.allowed_count < 2) {
        sp_test_skip("one CPU: every mask is the same");
        return;
    }
    sp_cpuset one = {{0}}, all = {{0}}, none = {{0}};
    sp_cpuset_add(&one, machine.allowed[0].cpu);
    for (uint32_t i = 0; i < machine.allowed_count; i++) sp_cpuset_add(&all, machine.allowed[i].cpu);
    SP_CHECK_INT(pin_in_child(-1, &one), SP_PIN_DONE);
    SP_CHECK_INT(pin_in_child(-1, &all), SP_PIN_DONE);
    SP_CHECK_INT(pin_in_child(-1, &none), SP_PIN_REFUSED);
    int ignored = pin_in_child(0, &one), refused = pin_in_child(EPERM, &one);
    if (ignored == NO_FILTER) {
        sp_test_skip("no system call filters here");
        return;
    }
    SP_CHECK_INT(ignored, SP_PIN_IGNORED);
    SP_CHECK_INT(refused, SP_PIN_REFUSED);
}
#endif
