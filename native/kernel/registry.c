// SPDX-License-Identifier: Apache-2.0
#include "kernel/declare.h"
#include "kernel/kernel.h"

// References first, so that a later row of equal rank replaces an earlier one.
static const sp_kernel table[] = {
#define SP_KERNEL(slot, tier, mr, nr, name) {#name, slot, tier, mr, nr, (void (*)(void))name},
#include "kernel/act/act.inc"
#include "kernel/convert/convert.inc"
#include "kernel/gemm/gemm.inc"
#include "kernel/norm/norm.inc"
#include "kernel/quant/quant.inc"
#include "kernel/rope/rope.inc"
#include "kernel/softmax/softmax.inc"
#include "kernel/topk/topk.inc"
#undef SP_KERNEL
};

const sp_kernel *sp_kernel_table(size_t *count) {
    *count = sizeof table / sizeof *table;
    return table;
}

const char *sp_tier_name(sp_tier tier) {
    static const char *const names[SP_TIER_COUNT] = {"scalar",       "avx2",      "avx512", "neon",
                                                     "neon_dotprod", "neon_i8mm", "sme",    "sme2"};
    return tier < SP_TIER_COUNT ? names[tier] : "unknown";
}

uint32_t sp_kernel_tiers_built(void) {
    uint32_t tiers = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) tiers |= 1u << table[i].tier;
    return tiers;
}

uint32_t sp_kernel_tiers_supported(const sp_cpu *cpu) {
    uint32_t tiers = 1u << SP_TIER_REF;
    if (cpu->avx2 && cpu->fma && cpu->f16c) tiers |= 1u << SP_TIER_AVX2;
    if (cpu->avx512f && cpu->avx512bw && cpu->avx512dq && cpu->avx512vl && cpu->avx512vnni)
        tiers |= 1u << SP_TIER_AVX512;
    if (cpu->neon) tiers |= 1u << SP_TIER_NEON;
    if (cpu->neon && cpu->dotprod) tiers |= 1u << SP_TIER_NEON_DOTPROD;
    if (cpu->neon && cpu->dotprod && cpu->i8mm) tiers |= 1u << SP_TIER_NEON_I8MM;
    if (cpu->sme) tiers |= 1u << SP_TIER_SME;
    if (cpu->sme && cpu->sme2) tiers |= 1u << SP_TIER_SME2;
    return tiers;
}

void sp_kernel_select(sp_kernel_set *set, uint32_t tiers) {
    *set = (sp_kernel_set){0};
    tiers |= 1u << SP_TIER_REF;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const sp_kernel *kernel = &table[i], **best = &set->k[kernel->slot];
        if (tiers >> kernel->tier & 1 && (!*best || (*best)->tier <= kernel->tier)) *best = kernel;
    }
}
