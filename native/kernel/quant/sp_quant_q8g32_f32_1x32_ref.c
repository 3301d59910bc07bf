// SPDX-License-Identifier: Apache-2.0
// The definition of activation quantisation: one row of float32 into its slot of an int8 panel.
#include "kernel/declare.h"
#include "kernel/quant/group.h"

void sp_quant_q8g32_f32_1x32_ref(const sp_quant_args *args) {
    for (size_t g = 0; g < args->n / SP_GROUP; g++) sp_quant_group(args, g);
}
