// SPDX-License-Identifier: Apache-2.0
// What the machine is made of and how much of it this process may use.
//
// A core is a physical core; its SMT siblings are logical CPUs of the same core. A cluster is a set of cores of equal
// strength that stand together: a performance level on Apple, a cpufreq/capacity class (and cluster id, where the
// system groups several cores under one) on Linux. What the system does not say is 0: unknown, never a guess; only
// the number of cores always has an answer.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu/features.h"

enum {
    SP_CPUS_MAX = 1024,    // logical CPUs looked at; more are ignored
    SP_CLUSTERS_MAX = 16,  // the weakest cores beyond that join the last cluster
    SP_UNITS_MAX = 64,     // matrix units told apart; cores of further ones have none
    SP_UNIT_NONE = UINT16_MAX,
};

// A set of logical CPUs.
typedef struct sp_cpuset {
    uint64_t bits[SP_CPUS_MAX / 64];
} sp_cpuset;

void sp_cpuset_add(sp_cpuset *set, uint32_t cpu);
bool sp_cpuset_has(const sp_cpuset *set, uint32_t cpu);
uint32_t sp_cpuset_count(const sp_cpuset *set);

// Adds the CPUs of a kernel list such as "0-3,8,10-11". False, with what came before added, at the first thing
// that is not one.
bool sp_cpuset_parse(sp_cpuset *set, const char *text);

typedef struct sp_cache {
    size_t bytes;      // 0: unknown or none
    uint32_t sharers;  // physical cores that share it
} sp_cache;

typedef struct sp_cluster {
    uint32_t rank;  // class of strength, 0 = strongest: cores of one rank are of one kind
    uint32_t cores;
    uint32_t usable;    // of them in the process's affinity
    uint32_t max_khz;   // highest clock; 0: unknown
    uint32_t capacity;  // the kernel's relative strength, 1024 = strongest; 0: unknown
    sp_cache l1d, l2, l3;
} sp_cluster;

typedef struct sp_core {
    uint16_t cpu;      // its lowest logical CPU that the process may use
    uint16_t cluster;  // index into clusters
    uint16_t unit;     // matrix unit that it shares, 0 .. sme_units - 1; SP_UNIT_NONE: its own, none, or unknown
} sp_core;

typedef struct sp_topology {
    uint32_t cpus;   // logical CPUs online
    uint32_t cores;  // physical cores online
    uint32_t smt;    // most logical CPUs of one core, 1 or more
    // Units of the Scalable Matrix Extension that cores share (0: none known), or that each core has for itself.
    // Neither says that user code may use them: that is a feature (sp_cpu.sme).
    uint32_t sme_units;
    bool sme_private;
    double quota;      // CPUs' worth of time that the container grants; 0: no limit
    uint32_t usable;  // cores to use by default: in the affinity, and no more than whole CPUs of the quota; 1 or more
    uint32_t clusters_count;
    sp_cluster clusters[SP_CLUSTERS_MAX];  // strongest first
    uint32_t allowed_count;
    sp_core allowed[SP_CPUS_MAX];  // cores of the affinity, strongest cluster first, then by CPU number
} sp_topology;

// The machine as it is now. Always fills `out` with something usable.
void sp_topology_detect(sp_topology *out);

// Workers to drive shared matrix units, on a machine where user code may use them: one for each unit that the
// strongest cores of the affinity share. A unit of weaker cores is weaker too and holds the others up (Apple's E
// cluster has a fifth of the rate). Where cores have units of their own, none: core workers use them. Where the system
// says nothing about units, one: never as many as threads.
uint32_t sp_topology_sme_workers(const sp_topology *topology);

// Logical CPUs, one for each core, of the cores that share the `nth` of those units (0 .. workers - 1); empty where
// units are unknown: its worker may run anywhere.
sp_cpuset sp_topology_unit_cpus(const sp_topology *topology, uint32_t nth);

// Logical CPUs that this process may run on now; 0 where the system does not say.
uint32_t sp_cpus_allowed(void);

// The reading of a Linux tree below `root` ("" for the machine's own) by a process of that affinity: what
// sp_topology_detect does on Linux, available everywhere for recorded machines.
void sp_topology_read_linux(sp_topology *out, const char *root, const sp_cpuset *affinity);

// The same for Apple's systems, from a look-up of sysctls.
void sp_topology_from_sysctl(sp_topology *out, sp_sysctl_fn look_up);
