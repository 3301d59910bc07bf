// SPDX-License-Identifier: Apache-2.0
// Which kernels each kind of worker uses.
#include "op/op.h"

// Products whose rows come by the dozen: a matrix unit fills its tiles with them. Grouped products take one activation
// at a time in decode, and stop at every group for its scales.
static const sp_slot full[] = {SP_SLOT_GEMM_Q8R, SP_SLOT_GEMM_F32};

void sp_run_kernels(sp_kernel_set kernels[SP_KIND_COUNT], uint32_t tiers, bool private_units) {
    sp_kernel_set *core = &kernels[SP_KIND_CORE], *sme = &kernels[SP_KIND_SME];
    sp_kernel_select(core, tiers & ~SP_TIERS_SME);
    sp_kernel_select(sme, tiers);
    if (!private_units) return;
    for (size_t i = 0; i < sizeof full / sizeof *full; i++) core->k[full[i]] = sme->k[full[i]];
}
