// SPDX-License-Identifier: Apache-2.0
// Matrix units from SMIDR_EL1, which the kernel shows for each CPU whose core has SME:
//
//   bits 14:13  sharing: 2 the core's own unit, 3 a shared one; 0 as the affinity says
//   bits 11:0   affinity, bits 51:32 its second part: together they name a shared unit
//
// With sharing 0, an affinity names a shared unit, and none says nothing: private by the first edition of the
// architecture, unfilled by many an emulator and hypervisor. No file, nothing said, or cores that contradict each other
// leave the units unknown. Guessing high is what hurts: workers beyond the units' number halve the rate of all.
#include "cpu/units.h"

#include "base/sysfile.h"

typedef enum sharing { UNKNOWN, PRIVATE, SHARED } sharing;

static sharing read_core(const char *root, uint32_t cpu, uint32_t *id) {
    long long value;
    if (!sp_sysfile_int(root, &value, "/sys/devices/system/cpu/cpu%u/regs/identification/smidr_el1", cpu))
        return UNKNOWN;
    uint64_t smidr = (uint64_t)value;
    *id = (uint32_t)(smidr >> 32 & 0xfffff) << 12 | (uint32_t)(smidr & 0xfff);
    switch (smidr >> 13 & 3) {
        case 2: return PRIVATE;
        case 3: return SHARED;
        case 0: return *id != 0 ? SHARED : UNKNOWN;
        default: return UNKNOWN;  // reserved
    }
}

// The index of a unit, which is added where it is new; SP_UNIT_NONE where there is no room.
static uint16_t unit_index(uint32_t ids[SP_UNITS_MAX], uint32_t *count, uint32_t id) {
    for (uint32_t i = 0; i < *count; i++)
        if (ids[i] == id) return (uint16_t)i;
    if (*count == SP_UNITS_MAX) return SP_UNIT_NONE;
    ids[*count] = id;
    return (uint16_t)(*count)++;
}

void sp_units_read_linux(sp_topology *topology, const char *root) {
    uint32_t ids[SP_UNITS_MAX], id = 0, privates = 0, shared = 0;
    topology->sme_units = 0;
    for (uint32_t i = 0; i < topology->allowed_count; i++) {
        sp_core *core = &topology->allowed[i];
        sharing is = read_core(root, core->cpu, &id);
        privates += is == PRIVATE;
        shared += is == SHARED;
        core->unit = is == SHARED ? unit_index(ids, &topology->sme_units, id) : SP_UNIT_NONE;
    }
    topology->sme_private = privates == topology->allowed_count;
    if (shared == topology->allowed_count) return;
    topology->sme_units = 0;
    for (uint32_t i = 0; i < topology->allowed_count; i++) topology->allowed[i].unit = SP_UNIT_NONE;
}
