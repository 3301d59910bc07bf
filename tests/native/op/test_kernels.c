// SPDX-License-Identifier: Apache-2.0
// Which kernels each kind of worker has: a shared unit's are its own worker's, a private one's serve large products.
#include "op/rig.h"
#include "test.h"

static bool is_sme(const sp_kernel *kernel) { return SP_TIERS_SME >> kernel->tier & 1; }

SP_TEST(op_kernels_follow_the_unit_and_its_owner) {
    const uint32_t tiers = sp_rig_tiers();
    for (int private_units = 0; private_units < 2; private_units++) {
        sp_kernel_set kernels[SP_KIND_COUNT], best;
        sp_run_kernels(kernels, tiers, private_units);
        sp_kernel_select(&best, tiers);
        for (int slot = 0; slot < SP_SLOT_COUNT; slot++) {
            sp_test_label("slot %d private=%d", slot, private_units);
            const bool large = slot == SP_SLOT_GEMM_Q8R || slot == SP_SLOT_GEMM_F32;
            SP_CHECK(kernels[SP_KIND_SME].k[slot] == best.k[slot]);
            SP_CHECK_INT(is_sme(kernels[SP_KIND_CORE].k[slot]), private_units && large && is_sme(best.k[slot]));
        }
    }
}
