// SPDX-License-Identifier: Apache-2.0
// The group's path in /proc/self/cgroup is the host's, while a container often sees its own group mounted at the top:
// a path that is not there is skipped on the way up, and the top is always looked at.
#include "cpu/quota.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/sysfile.h"

static double smaller(double a, double b) { return a == 0 || (b != 0 && b < a) ? b : a; }

static double read_v2(const char *root, const char *group) {
    char text[64];
    double quota, period;
    if (!sp_sysfile_line(root, text, sizeof text, "/sys/fs/cgroup%s/cpu.max", group) ||
        sscanf(text, "%lf %lf", &quota, &period) != 2) {  // "max 100000" is no number
        return 0;
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

static double read_v1(const char *root, const char *mount, const char *group) {
    long long quota, period;
    if (!sp_sysfile_int(root, &quota, "/sys/fs/cgroup/%s%s/cpu.cfs_quota_us", mount, group) ||
        !sp_sysfile_int(root, &period, "/sys/fs/cgroup/%s%s/cpu.cfs_period_us", mount, group)) {
        return 0;
    }
    return quota > 0 && period > 0 ? (double)quota / (double)period : 0;
}

// The smallest limit of `group` and all groups above it; cuts `group` down to nothing.
static double read_upwards(const char *root, const char *mount, char *group) {
    double least = 0;
    for (;;) {
        if (strcmp(group, "/") == 0) group[0] = '\0';
        least = smaller(least, mount == NULL ? read_v2(root, group) : read_v1(root, mount, group));
        char *slash = strrchr(group, '/');
        if (slash == NULL) return least;
        *slash = '\0';
    }
}

// Whether `controllers`, a list such as "cpu,cpuacct", has "cpu".
static bool has_cpu(const char *controllers) {
    const char *at = controllers;
    for (;;) {
        size_t length = strcspn(at, ",");
        if (length == 3 && strncmp(at, "cpu", 3) == 0) return true;
        if (at[length] == '\0') return false;
        at += length + 1;
    }
}

// One line of /proc/self/cgroup: number:controllers:path.
static double read_group(const char *root, char *line) {
    char *controllers = strchr(line, ':');
    char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (group == NULL) return 0;
    controllers++;
    *group++ = '\0';
    if (controllers[0] == '\0') return read_upwards(root, NULL, group);
    if (!has_cpu(controllers)) return 0;
    char again[1024];
    snprintf(again, sizeof again, "%s", group);
    return smaller(read_upwards(root, controllers, group), read_upwards(root, "cpu", again));
}

double sp_quota_read_linux(const char *root) {
    char text[4096];
    if (!sp_sysfile_text(root, text, sizeof text, "/proc/self/cgroup")) {
        char top[] = "";
        return read_upwards(root, NULL, top);
    }
    double least = 0;
    for (char *line = text; line != NULL && *line != '\0';) {
        char *next = strchr(line, '\n');
        if (next != NULL) *next++ = '\0';
        least = smaller(least, read_group(root, line));
        line = next;
    }
    return least;
}
