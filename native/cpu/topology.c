// SPDX-License-Identifier: Apache-2.0
// What the systems' readers share: CPU sets, and who drives the matrix units.
#include "cpu/topology.h"

#include <errno.h>
#include <stdlib.h>

void sp_cpuset_add(sp_cpuset *set, uint32_t cpu) {
    if (cpu < SP_CPUS_MAX) set->bits[cpu / 64] |= (uint64_t)1 << cpu % 64;
}

bool sp_cpuset_has(const sp_cpuset *set, uint32_t cpu) {
    return cpu < SP_CPUS_MAX && set->bits[cpu / 64] >> cpu % 64 & 1;
}

uint32_t sp_cpuset_count(const sp_cpuset *set) {
    uint32_t count = 0;
    for (size_t i = 0; i < SP_CPUS_MAX / 64; i++) count += (uint32_t)__builtin_popcountll(set->bits[i]);
    return count;
}

// One number of at most SP_CPUS_MAX - 1 at *text, which moves past it.
static bool parse_cpu(const char **text, uint32_t *cpu) {
    char *end;
    if (**text < '0' || **text > '9') return false;
    errno = 0;
    unsigned long value = strtoul(*text, &end, 10);
    *text = end;
    *cpu = (uint32_t)value;
    return errno == 0 && value < SP_CPUS_MAX;
}

bool sp_cpuset_parse(sp_cpuset *set, const char *text) {
    while (*text != '\0' && *text != '\n') {
        uint32_t first, last;
        if (!parse_cpu(&text, &first)) return false;
        last = first;
        if (*text == '-') {
            text++;
            if (!parse_cpu(&text, &last)) return false;
        }
        for (uint32_t cpu = first; cpu <= last; cpu++) sp_cpuset_add(set, cpu);
        if (*text == ',') text++;
    }
    return true;
}

// The units that the strongest allowed cores share, in order of those cores.
static uint32_t best_units(const sp_topology *t, uint16_t units[SP_UNITS_MAX]) {
    uint32_t count = 0, rank = t->clusters[t->allowed[0].cluster].rank;
    for (uint32_t i = 0; i < t->allowed_count; i++) {
        const sp_core *core = &t->allowed[i];
        if (core->unit == SP_UNIT_NONE || t->clusters[core->cluster].rank != rank) continue;
        uint32_t seen = 0;
        while (seen < count && units[seen] != core->unit) seen++;
        if (seen == count && count < SP_UNITS_MAX) units[count++] = core->unit;
    }
    return count;
}

uint32_t sp_topology_sme_workers(const sp_topology *topology) {
    uint16_t units[SP_UNITS_MAX];
    if (topology->sme_private) return 0;
    uint32_t count = best_units(topology, units);
    return count > 0 ? count : 1;
}

sp_cpuset sp_topology_unit_cpus(const sp_topology *topology, uint32_t nth) {
    uint16_t units[SP_UNITS_MAX];
    sp_cpuset cpus = {{0}};
    if (nth >= best_units(topology, units)) return cpus;
    for (uint32_t i = 0; i < topology->allowed_count; i++)
        if (topology->allowed[i].unit == units[nth]) sp_cpuset_add(&cpus, topology->allowed[i].cpu);
    return cpus;
}
