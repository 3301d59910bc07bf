// SPDX-License-Identifier: Apache-2.0
// For programs that run one kernel by its name.
#pragma once

#include <string.h>

#include "kernel/kernel.h"

// The built kernel of that name; NULL where there is none or this machine cannot run it.
static inline const sp_kernel *sp_named_kernel(const char *name) {
    sp_cpu cpu;
    sp_cpu_detect(&cpu);
    size_t count;
    const sp_kernel *table = sp_kernel_table(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].name, name) == 0 && sp_kernel_tiers_supported(&cpu) >> table[i].tier & 1) return &table[i];
    return NULL;
}
