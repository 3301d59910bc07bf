# SPDX-License-Identifier: Apache-2.0
# Kernels and tiers: what was built, what this machine can run, what is used.

cdef extern from "kernel/kernel.h":
    ctypedef enum sp_tier:
        SP_TIER_COUNT
    ctypedef enum sp_slot:
        SP_SLOT_COUNT
    enum:
        SP_TIERS_SME
    ctypedef struct sp_kernel:
        const char *name
        sp_slot slot
        sp_tier tier
        uint8_t mr
        uint8_t nr
    ctypedef struct sp_kernel_set:
        const sp_kernel *k[SP_SLOT_COUNT]
    const sp_kernel *sp_kernel_table(size_t *count)
    const char *sp_tier_name(sp_tier tier)
    void sp_kernel_select(sp_kernel_set *set, uint32_t tiers)
    uint32_t sp_kernel_tiers_built()
    uint32_t sp_kernel_tiers_supported(const sp_cpu *cpu)


def tiers() -> list[dict]:
    """The instruction-set tiers, lowest first: name, whether built into this library, whether this CPU runs it."""
    cdef sp_cpu cpu
    cdef int i
    sp_cpu_detect(&cpu)
    cdef uint32_t built = sp_kernel_tiers_built(), supported = sp_kernel_tiers_supported(&cpu)
    return [{"name": sp_tier_name(<sp_tier>i).decode(), "built": bool(built >> i & 1),
             "supported": bool(supported >> i & 1)} for i in range(SP_TIER_COUNT)]


cdef uint32_t tier_bits(names) except 0:
    """Bits of tiers by name; each must be built and supported."""
    bits = 1
    usable = {tier["name"]: i for i, tier in enumerate(tiers()) if tier["built"] and tier["supported"]}
    for name in names:
        if name not in usable:
            raise _errors.InvalidParameterError(
                f"instruction set {name!r} is not available here; use one of {', '.join(usable)}")
        bits |= 1 << usable[name]
    return bits


def kernels(use: _Sequence[str] | None = None) -> list[dict]:
    """All built kernels: name, tier, tile, and whether a run restricted to the tiers `use` would choose it.

    `workers` says for which kinds of worker: "core", and "sme" where a unit that cores share is used.
    """
    cdef sp_kernel_set sets[SP_KIND_COUNT]
    cdef sp_topology machine
    cdef size_t count, i
    cdef const sp_kernel *table = sp_kernel_table(&count)
    if use is None:
        use = [tier["name"] for tier in tiers() if tier["built"] and tier["supported"]]
    cdef uint32_t bits = tier_bits(use), matrix = bits & SP_TIERS_SME
    sp_topology_detect(&machine)
    sp_run_kernels(sets, bits, machine.sme_private)
    found = []
    for i in range(count):
        workers = ["core"] if sets[<int>SP_KIND_CORE].k[<int>table[i].slot] == &table[i] else []
        if matrix and not machine.sme_private and sets[<int>SP_KIND_SME].k[<int>table[i].slot] == &table[i]:
            workers.append("sme")
        found.append({"name": table[i].name.decode(), "tier": sp_tier_name(table[i].tier).decode(), "mr": table[i].mr,
                      "nr": table[i].nr, "slot": <int>table[i].slot, "chosen": bool(workers), "workers": workers})
    return found
