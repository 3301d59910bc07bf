# SPDX-License-Identifier: Apache-2.0
# What this machine is: processor features and topology.

from libc.stdint cimport int32_t, uint16_t, uint32_t, uint64_t

cdef extern from "cpu/features.h":
    ctypedef enum sp_arch:
        pass
    ctypedef struct sp_cpu:
        sp_arch arch
        char *brand  # an array
        uint64_t midr
        uint32_t svl
        bint sme
    ctypedef struct sp_feature:
        const char *name
        size_t offset
    void sp_cpu_detect(sp_cpu *out)
    const char *sp_arch_name(sp_arch arch)
    const sp_feature *sp_feature_table(size_t *count)

cdef extern from "cpu/topology.h":
    ctypedef struct sp_cache:
        size_t bytes
        uint32_t sharers
    ctypedef struct sp_cluster:
        uint32_t rank
        uint32_t cores
        uint32_t usable
        uint32_t max_khz
        uint32_t capacity
        sp_cache l1d
        sp_cache l2
        sp_cache l3
    ctypedef struct sp_core:
        uint16_t cpu
    ctypedef struct sp_topology:
        uint32_t cpus
        uint32_t cores
        uint32_t smt
        uint32_t sme_units
        bint sme_private
        double quota
        uint32_t usable
        uint32_t clusters_count
        sp_cluster *clusters  # an array
        uint32_t allowed_count
        sp_core *allowed  # an array
    void sp_topology_detect(sp_topology *out)
    uint32_t sp_topology_sme_workers(const sp_topology *topology)


cdef dict cache_dict(const sp_cache *cache):
    return {"bytes": cache.bytes, "sharers": cache.sharers} if cache.bytes else None


cdef dict cluster_dict(const sp_cluster *cluster):
    return {
        "rank": cluster.rank,
        "cores": cluster.cores,
        "usable": cluster.usable,
        "max_mhz": cluster.max_khz / 1000.0 if cluster.max_khz else None,
        "capacity": cluster.capacity or None,
        "l1d": cache_dict(&cluster.l1d),
        "l2": cache_dict(&cluster.l2),
        "l3": cache_dict(&cluster.l3),
    }


def cpu_info() -> dict:
    """This machine as it is now: features that code may use, cores, clusters, caches, and the process's share of it.

    Sizes are bytes, clocks MHz, `quota` CPUs' worth of time, `svl` bytes of a streaming vector of this thread. What the
    system does not say is None. `usable` is the default number of threads: physical cores in the process's affinity,
    within the container's quota; `allowed` are logical CPUs, one for each core of the affinity, strongest first.
    `sme_units` are matrix units that those cores share, 0 where none is known; `sme_private` says that each core has its
    own; `sme_workers` is how many workers should drive shared units: one where their number is unknown.
    """
    cdef sp_cpu cpu
    cdef sp_topology machine
    cdef size_t count, i
    cdef const sp_feature *features = sp_feature_table(&count)
    sp_cpu_detect(&cpu)
    sp_topology_detect(&machine)
    return {
        "arch": sp_arch_name(cpu.arch).decode(),
        "brand": (<bytes>cpu.brand).decode("utf-8", "replace"),
        "features": {
            features[i].name.decode(): bool((<const unsigned char *>&cpu)[features[i].offset]) for i in range(count)
        },
        "midr": cpu.midr or None,
        "svl": cpu.svl or None,
        "cpus": machine.cpus,
        "cores": machine.cores,
        "smt": machine.smt,
        "usable": machine.usable,
        "quota": machine.quota or None,
        "sme_units": machine.sme_units,
        "sme_private": bool(machine.sme_private),
        "sme_workers": sp_topology_sme_workers(&machine) if cpu.sme else 0,
        "allowed": [machine.allowed[i].cpu for i in range(machine.allowed_count)],
        "clusters": [cluster_dict(&machine.clusters[i]) for i in range(machine.clusters_count)],
    }
