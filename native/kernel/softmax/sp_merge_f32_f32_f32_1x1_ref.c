// SPDX-License-Identifier: Apache-2.0
// The definition of the merge of two key blocks' partial results into the earlier one.
#include <math.h>

#include "kernel/declare.h"
#include "kernel/softmax/exp2.h"

void sp_merge_f32_f32_f32_1x1_ref(const sp_merge_args *args) {
    for (size_t r = 0; r < args->rows; r++) {
        const float max = args->m[r] > args->mb[r] ? args->m[r] : args->mb[r];
        const float a = sp_exp2(args->m[r] - max);
        const float b = sp_exp2(args->mb[r] - max);
        args->m[r] = max;
        args->l[r] = fmaf(args->lb[r], b, args->l[r] * a);
        float *o = args->o + r * args->ldo;
        const float *ob = args->ob + r * args->ldb;
        for (size_t i = 0; i < args->d; i++) o[i] = fmaf(ob[i], b, o[i] * a);
    }
}
