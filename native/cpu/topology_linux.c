// SPDX-License-Identifier: Apache-2.0
// Linux and Android: sysfs. Any of its files may be missing (old kernels), unreadable (Android's sandbox) or
// nonsense (virtual machines): each has a fallback, and without all of them a CPU of the affinity counts as a core.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cpu/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sysfile.h"
#include "cpu/quota.h"
#include "cpu/units.h"

#define CPU "/sys/devices/system/cpu/cpu%u"

enum { LIST_BYTES = 4096, CACHES_MAX = 10 };

// One physical core as read; `leader`, its lowest CPU, stands for it.
typedef struct core {
    uint32_t leader, first_allowed;  // first_allowed: SP_CPUS_MAX when the process may use none of its CPUs
    uint32_t package, group;         // group: cluster id shared with other cores, or UINT32_MAX
    uint32_t capacity, khz;
    uint32_t rank;  // class of strength, 0 = strongest
} core;

typedef struct machine {
    const char *root;
    uint32_t count;
    core core[SP_CPUS_MAX];
} machine;

static uint32_t read_u32(const char *root, uint32_t cpu, const char *file, uint32_t otherwise) {
    long long value;
    bool good = sp_sysfile_int(root, &value, CPU "/%s", cpu, file) && value >= 0 && value < UINT32_MAX;
    return good ? (uint32_t)value : otherwise;
}

static bool read_set(const char *root, sp_cpuset *set, uint32_t cpu, const char *file) {
    char list[LIST_BYTES];
    *set = (sp_cpuset){{0}};
    return sp_sysfile_line(root, list, sizeof list, CPU "/%s", cpu, file) && sp_cpuset_parse(set, list) &&
           sp_cpuset_has(set, cpu);
}

// The first CPU in both sets, which have one in common.
static uint32_t lowest(const sp_cpuset *set, const sp_cpuset *online) {
    uint32_t cpu = 0;
    while (cpu < SP_CPUS_MAX - 1 && !(sp_cpuset_has(set, cpu) && sp_cpuset_has(online, cpu))) cpu++;
    return cpu;
}

static void add_core(machine *m, uint32_t cpu) {
    uint32_t group = read_u32(m->root, cpu, "topology/cluster_id", UINT32_MAX);
    m->core[m->count++] = (core){
        .leader = cpu,
        .first_allowed = SP_CPUS_MAX,
        .package = read_u32(m->root, cpu, "topology/physical_package_id", 0),
        .group = group == 65535 ? UINT32_MAX : group,  // the kernel's "none"
        .capacity = read_u32(m->root, cpu, "cpu_capacity", 0),
        .khz = read_u32(m->root, cpu, "cpufreq/cpuinfo_max_freq", 0),
    };
}

// Finds the cores among the CPUs online and sets the topology's counts of CPUs.
static void read_cores(machine *m, sp_topology *out, const sp_cpuset *online, const sp_cpuset *allowed) {
    uint32_t threads[SP_CPUS_MAX] = {0};   // of a core, so far
    uint16_t core_of[SP_CPUS_MAX] = {0};  // CPU → index into m->core
    for (uint32_t cpu = 0; cpu < SP_CPUS_MAX; cpu++) {
        if (!sp_cpuset_has(online, cpu)) continue;
        sp_cpuset siblings;
        bool known = read_set(m->root, &siblings, cpu, "topology/core_cpus_list") ||
                     read_set(m->root, &siblings, cpu, "topology/thread_siblings_list");
        uint32_t leader = known ? lowest(&siblings, online) : cpu;
        if (leader == cpu) add_core(m, cpu);
        uint32_t index = leader < cpu ? core_of[leader] : m->count - 1;
        core_of[cpu] = (uint16_t)index;
        if (sp_cpuset_has(allowed, cpu) && m->core[index].first_allowed == SP_CPUS_MAX)
            m->core[index].first_allowed = cpu;
        threads[index]++;
        out->cpus++;
        out->smt = threads[index] > out->smt ? threads[index] : out->smt;
    }
    out->cores = m->count;
}

// A cluster id that no two cores share names a core, not a cluster (x86 gives one to each private L2).
static void drop_lonely_groups(machine *m) {
    bool shared[SP_CPUS_MAX] = {false};
    for (uint32_t i = 0; i < m->count; i++) {
        for (uint32_t j = 0; j < i; j++)
            if (m->core[i].group == m->core[j].group && m->core[i].package == m->core[j].package)
                shared[i] = shared[j] = true;
    }
    for (uint32_t i = 0; i < m->count; i++) m->core[i].group = shared[i] ? m->core[i].group : UINT32_MAX;
}

static int descending(uint32_t a, uint32_t b) { return (a < b) - (a > b); }

static int by_strength(const void *a, const void *b) {
    const core *x = a, *y = b;
    int order = descending(x->capacity, y->capacity);
    order = order != 0 ? order : descending(x->khz, y->khz);
    return order != 0 ? order : descending(y->leader, x->leader);
}

static int by_cluster(const void *a, const void *b) {
    const core *x = a, *y = b;
    int order = descending(y->rank, x->rank);
    order = order != 0 ? order : descending(y->package, x->package);
    order = order != 0 ? order : descending(y->group, x->group);
    return order != 0 ? order : descending(y->leader, x->leader);
}

static bool weaker(uint32_t value, uint32_t than) { return (double)value < 0.9 * than; }

// Sorts cores into classes. Within ten per cent they are of one kind: x86 lets its best cores of a kind boost a
// little higher.
static void rank_cores(machine *m) {
    qsort(m->core, m->count, sizeof(core), by_strength);
    core *head = &m->core[0];
    for (uint32_t i = 1; i < m->count; i++) {
        core *at = &m->core[i];
        at->rank = head->rank;
        if (weaker(at->capacity, head->capacity) || weaker(at->khz, head->khz)) {
            at->rank++;
            head = at;
        }
    }
    qsort(m->core, m->count, sizeof(core), by_cluster);
}

// "48K", "2048K", "16M"
static size_t read_size(const char *root, uint32_t cpu, uint32_t index) {
    char text[32], unit = 'B';
    unsigned long number;
    if (!sp_sysfile_line(root, text, sizeof text, CPU "/cache/index%u/size", cpu, index) ||
        sscanf(text, "%lu%c", &number, &unit) < 1 || number > UINT32_MAX) {
        return 0;
    }
    return (size_t)number << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0);
}

static uint32_t count_cores(const machine *m, const sp_cpuset *set) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->count; i++) count += sp_cpuset_has(set, m->core[i].leader);
    return count;
}

static void read_caches(const machine *m, sp_cluster *cluster, uint32_t cpu) {
    sp_cache *levels[] = {&cluster->l1d, &cluster->l2, &cluster->l3};
    for (uint32_t index = 0; index < CACHES_MAX; index++) {
        char type[32];
        long long level;
        if (!sp_sysfile_line(m->root, type, sizeof type, CPU "/cache/index%u/type", cpu, index) ||
            !sp_sysfile_int(m->root, &level, CPU "/cache/index%u/level", cpu, index)) {
            return;
        }
        if (strcmp(type, "Instruction") == 0 || level < 1 || level > 3) continue;
        char file[64];
        sp_cpuset sharers;
        snprintf(file, sizeof file, "cache/index%u/shared_cpu_list", index);
        bool known = read_set(m->root, &sharers, cpu, file);
        *levels[level - 1] = (sp_cache){read_size(m->root, cpu, index), known ? count_cores(m, &sharers) : 1};
    }
}

static bool same_cluster(const core *a, const core *b) {
    return a->rank == b->rank && a->package == b->package && a->group == b->group;
}

static void fill_clusters(sp_topology *out, const machine *m) {
    for (uint32_t i = 0; i < m->count; i++) {
        const core *at = &m->core[i];
        bool opens = i == 0 || !same_cluster(at, at - 1);
        if (opens && out->clusters_count < SP_CLUSTERS_MAX) {
            sp_cluster *fresh = &out->clusters[out->clusters_count++];
            fresh->rank = at->rank;
            fresh->max_khz = at->khz;
            fresh->capacity = at->capacity;
            read_caches(m, fresh, at->leader);
        }
        uint32_t index = out->clusters_count - 1;
        sp_cluster *cluster = &out->clusters[index];
        cluster->cores++;
        cluster->max_khz = at->khz > cluster->max_khz ? at->khz : cluster->max_khz;
        if (at->first_allowed < SP_CPUS_MAX) {
            cluster->usable++;
            out->allowed[out->allowed_count++] = (sp_core){(uint16_t)at->first_allowed, (uint16_t)index, SP_UNIT_NONE};
        }
    }
}

static sp_cpuset read_online(const char *root, const sp_cpuset *affinity) {
    char list[LIST_BYTES];
    sp_cpuset online = {{0}};
    if (!sp_sysfile_line(root, list, sizeof list, "/sys/devices/system/cpu/online") ||
        !sp_cpuset_parse(&online, list) || sp_cpuset_count(&online) == 0) {
        online = *affinity;
    }
    if (sp_cpuset_count(&online) == 0) sp_cpuset_add(&online, 0);
    return online;
}

// An affinity that names no CPU online is not believed.
static sp_cpuset intersect(const sp_cpuset *online, const sp_cpuset *affinity) {
    sp_cpuset both;
    for (size_t i = 0; i < SP_CPUS_MAX / 64; i++) both.bits[i] = online->bits[i] & affinity->bits[i];
    return sp_cpuset_count(&both) > 0 ? both : *online;
}

void sp_topology_read_linux(sp_topology *out, const char *root, const sp_cpuset *affinity) {
    *out = (sp_topology){.smt = 1};
    sp_cpuset online = read_online(root, affinity);
    sp_cpuset allowed = intersect(&online, affinity);
    machine m = {.root = root};
    read_cores(&m, out, &online, &allowed);
    drop_lonely_groups(&m);
    rank_cores(&m);
    fill_clusters(out, &m);
    sp_units_read_linux(out, root);
    out->quota = sp_quota_read_linux(root);
    // Whole CPUs only: the group is stopped when its time is up, and a worker stopped in a tile stops the others too.
    uint32_t granted = out->quota >= 1 ? (uint32_t)out->quota : 1;
    out->usable = out->quota > 0 && granted < out->allowed_count ? granted : out->allowed_count;
}

#ifdef __linux__
#include <sched.h>
#include <unistd.h>

// Of the main thread, which stands for the process: a thread that pinned itself still counts the others' CPUs.
static sp_cpuset read_affinity(void) {
    sp_cpuset set = {{0}};
    if (sched_getaffinity(getpid(), sizeof set, (cpu_set_t *)(void *)&set) != 0) set = (sp_cpuset){{0}};
    return set;
}

void sp_topology_detect(sp_topology *out) {
    sp_cpuset affinity = read_affinity();
    sp_topology_read_linux(out, "", &affinity);
}

uint32_t sp_cpus_allowed(void) {
    sp_cpuset affinity = read_affinity();
    return sp_cpuset_count(&affinity);
}
#endif
