// SPDX-License-Identifier: Apache-2.0
// macOS and iOS: performance levels from sysctl, strongest first. There is no affinity and no container quota.
#include "cpu/topology.h"

#include <stdio.h>

static uint32_t number(sp_sysctl_fn look_up, const char *name, uint32_t otherwise) {
    uint64_t value;
    return look_up(name, &value) && value <= UINT32_MAX ? (uint32_t)value : otherwise;
}

static uint32_t of_level(sp_sysctl_fn look_up, uint32_t level, const char *what) {
    char name[64];
    snprintf(name, sizeof name, "hw.perflevel%u.%s", level, what);
    return number(look_up, name, 0);
}

// Adds `cores` cores, the next ones by number, to the cluster opened last.
static void add_cores(sp_topology *out, uint32_t cores, uint16_t unit) {
    for (uint32_t i = 0; i < cores && out->allowed_count < SP_CPUS_MAX; i++) {
        uint16_t cpu = (uint16_t)out->allowed_count;
        out->allowed[out->allowed_count++] = (sp_core){cpu, (uint16_t)(out->clusters_count - 1), unit};
    }
}

// A level's cores stand in groups that share an L2 and, on chips with SME, a matrix unit: each group is a cluster.
static void add_level(sp_topology *out, sp_sysctl_fn look_up, uint32_t level, bool sme) {
    uint32_t cores = of_level(look_up, level, "physicalcpu"), together = of_level(look_up, level, "cpusperl2");
    together = together > 0 && together < cores ? together : cores;
    while (cores > 0 && out->clusters_count < SP_CLUSTERS_MAX) {
        uint32_t here = cores < together ? cores : together;
        out->clusters[out->clusters_count++] = (sp_cluster){
            .rank = level,
            .cores = here,
            .usable = here,
            .l1d = {of_level(look_up, level, "l1dcachesize"), 1},
            .l2 = {of_level(look_up, level, "l2cachesize"), here},
            .l3 = {of_level(look_up, level, "l3cachesize"), here},
        };
        add_cores(out, here, sme ? (uint16_t)out->sme_units++ : SP_UNIT_NONE);
        cores -= here;
    }
}

void sp_topology_from_sysctl(sp_topology *out, sp_sysctl_fn look_up) {
    sp_cpu cpu;
    sp_cpu_from_sysctl(&cpu, look_up);
    *out = (sp_topology){.smt = 1};
    uint32_t levels = number(look_up, "hw.nperflevels", 0);
    for (uint32_t level = 0; level < levels && level < SP_CLUSTERS_MAX; level++)
        add_level(out, look_up, level, cpu.sme);
    if (out->allowed_count == 0) {  // before macOS 12, or an Intel Mac: one cluster, and units unknown
        uint32_t cores = number(look_up, "hw.physicalcpu", 1);
        cores = cores >= 1 && cores <= SP_CPUS_MAX ? cores : 1;
        out->clusters[out->clusters_count++] = (sp_cluster){.cores = cores, .usable = cores};
        add_cores(out, cores, SP_UNIT_NONE);
    }
    out->cores = out->usable = out->allowed_count;
    out->cpus = number(look_up, "hw.logicalcpu", out->cores);
    out->smt = out->cpus > out->cores ? out->cpus / out->cores : 1;
}

#ifdef __APPLE__
void sp_topology_detect(sp_topology *out) { sp_topology_from_sysctl(out, sp_sysctl); }

uint32_t sp_cpus_allowed(void) { return 0; }
#endif
