// SPDX-License-Identifier: Apache-2.0
// How much CPU time the container grants.
#pragma once

// The process's limit in CPUs (1.5: one and a half CPUs' worth of time), read below `root`; 0 without a limit.
// Knows cgroup v2 (cpu.max) and v1 (cpu.cfs_quota_us); the smallest limit from the process's own group upwards counts.
double sp_quota_read_linux(const char *root);
