// SPDX-License-Identifier: Apache-2.0
// Micro-kernels and their registry.
//
// A micro-kernel is a pure function on a tile: no allocation, thread, global, errno. Every variant of a family
// computes the same bits; the scalar reference (`_ref`) of a family defines them and is always built.
// A new kernel is its file plus one row in its family's `.inc`:
//
//     SP_KERNEL(slot, tier, mr, nr, name)
//
// The same rows make the declarations, the registry, the tests and the benchmarks.
// Names follow sp_<op>_<dst>_<lhs>_<rhs>_<mr>x<nr>_<isa>[_<feature>]; file, symbol and row carry the same name.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu/features.h"
#include "kernel/families.h"

typedef enum sp_tier {
    SP_TIER_REF,
    SP_TIER_AVX2,
    SP_TIER_AVX512,  // F, BW, DQ, VL and VNNI
    SP_TIER_NEON,    // ARMv8.0
    SP_TIER_NEON_DOTPROD,  // and SDOT; like the following ones it has kernels only where they pay
    SP_TIER_NEON_I8MM,     // and SMMLA
    SP_TIER_SME,           // matrix unit, version 1: streaming mode, any vector length
    SP_TIER_SME2,          // version 2: multi-vector loads, look-up table
    SP_TIER_COUNT
} sp_tier;

typedef struct sp_kernel {
    const char *name;
    sp_slot slot;
    sp_tier tier;
    uint8_t mr;  // rows (tokens, queries) of the largest tile; 1 where the family has no tile
    uint8_t nr;  // columns of the largest tile
    void (*fn)(void);  // cast to the slot's function type (families.h)
} sp_kernel;

// All kernels built into this library, references first; `*count` receives their number.
const sp_kernel *sp_kernel_table(size_t *count);

const char *sp_tier_name(sp_tier tier);

// The kernels that a run uses: one per slot.
typedef struct sp_kernel_set {
    const sp_kernel *k[SP_SLOT_COUNT];
} sp_kernel_set;

// Fills `set` with the best built kernel of every slot whose tier's bit is in `tiers` (1u << sp_tier).
// SP_TIER_REF is always considered, so every slot is filled.
void sp_kernel_select(sp_kernel_set *set, uint32_t tiers);

// The tiers of a matrix unit, as bits.
#define SP_TIERS_SME (1u << SP_TIER_SME | 1u << SP_TIER_SME2)

// Tiers built into this library, and tiers that a machine can run, as bits.
uint32_t sp_kernel_tiers_built(void);
uint32_t sp_kernel_tiers_supported(const sp_cpu *cpu);
