// SPDX-License-Identifier: Apache-2.0
// macOS and iOS: performance levels from sysctl, strongest first. There is no affinity and no container quota.
#ifdef __APPLE__
#include "cpu/topology.h"

#include <stdio.h>
#include <sys/sysctl.h>

static uint64_t number(const char *name, uint64_t otherwise) {
    uint64_t value = 0;  // 4-byte answers fill the low half: these machines are little-endian
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 ? value : otherwise;
}

static uint32_t of_level(uint32_t level, const char *what) {
    char name[64];
    snprintf(name, sizeof name, "hw.perflevel%u.%s", level, what);
    return (uint32_t)number(name, 0);
}

// A level's cores stand in groups that share an L2, and on chips with SME a matrix unit; each group is a cluster.
static void add_level(sp_topology *out, uint32_t level, uint32_t *cpu) {
    uint32_t cores = of_level(level, "physicalcpu"), together = of_level(level, "cpusperl2");
    together = together > 0 && together < cores ? together : cores;
    while (cores > 0 && out->clusters_count < SP_CLUSTERS_MAX) {
        uint32_t here = cores < together ? cores : together;
        out->clusters[out->clusters_count] = (sp_cluster){
            .cores = here,
            .usable = here,
            .l1d = {of_level(level, "l1dcachesize"), 1},
            .l2 = {of_level(level, "l2cachesize"), here},
            .l3 = {of_level(level, "l3cachesize"), here},
        };
        for (uint32_t i = 0; i < here && out->allowed_count < SP_CPUS_MAX; i++)
            out->allowed[out->allowed_count++] = (sp_core){(uint16_t)(*cpu)++, (uint16_t)out->clusters_count};
        out->clusters_count++;
        cores -= here;
    }
}

void sp_topology_detect(sp_topology *out) {
    *out = (sp_topology){.smt = 1};
    uint32_t levels = (uint32_t)number("hw.nperflevels", 0), cpu = 0;
    for (uint32_t level = 0; level < levels; level++) add_level(out, level, &cpu);
    if (out->allowed_count == 0) {  // before macOS 12, or an Intel Mac
        uint32_t cores = (uint32_t)number("hw.physicalcpu", 1);
        out->clusters[out->clusters_count++] = (sp_cluster){.cores = cores, .usable = cores};
        for (uint32_t i = 0; i < cores && i < SP_CPUS_MAX; i++)
            out->allowed[out->allowed_count++] = (sp_core){(uint16_t)i, 0};
    }
    out->cores = out->usable = out->allowed_count;
    out->cpus = (uint32_t)number("hw.logicalcpu", out->cores);
    out->smt = out->cpus > out->cores ? out->cpus / out->cores : 1;
    out->sme_units = number("hw.optional.arm.FEAT_SME", 0) != 0 ? out->clusters_count : 0;
}

uint32_t sp_cpus_allowed(void) { return 0; }
#endif
