// SPDX-License-Identifier: Apache-2.0
// Observing: the largest size of each column over rows and runs, exact, in any order of tiles, with NaN above all.
#include <math.h>

#include "kernel/variants.h"
#include "op/rig.h"
#include "test.h"

enum { ROWS = 21, COLUMNS = 288 };

SP_TEST(op_observe_keeps_the_largest_size_of_each_column) {
    sp_rig rig;
    sp_rig_open(&rig, SP_TIER_REF, 1 << 16, 1);
    rig.run.batch.tokens = ROWS;
    float peaks[COLUMNS] = {0}, want[COLUMNS] = {0};
    const sp_observe op = {.in = sp_rig_act(&rig, ROWS, COLUMNS, true, false, 1), .peaks = peaks};
    float *x = sp_rows(&rig.run, op.in.rows_at);
    for (uint64_t again = 2; again < 5; again++) {
        for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++) want[i % COLUMNS] = fmaxf(want[i % COLUMNS], fabsf(x[i]));
        SP_RIG_RUN(observe, &op, &rig);
        SP_CHECK_FLOATS(peaks, want, COLUMNS);
        sp_fill_floats(x, (size_t)ROWS * COLUMNS, SP_FILL_NORMAL, again);
    }
    x[3] = -INFINITY, x[COLUMNS + 7] = NAN, x[2 * COLUMNS + 7] = INFINITY;
    SP_RIG_RUN(observe, &op, &rig);
    SP_RIG_RUN(observe, &op, &rig);
    SP_CHECK(peaks[3] == INFINITY && isnan(peaks[7]));
    sp_rig_close(&rig);
}
