// SPDX-License-Identifier: Apache-2.0
// The portable loop: what the compiler makes of int8 multiply-adds for the baseline of the target. The operands are
// one small row that stays in the first-level cache, and volatile once per round so that no round can be left out.
#include "probe/probe.h"

enum { LANES = 256, OPS = 2 };

uint64_t sp_probe_int8_ref(uint64_t rounds) {
    volatile int8_t factor = 1;
    int8_t a[LANES];
    int32_t sum = 0;
    for (size_t i = 0; i < LANES; i++) a[i] = (int8_t)i;
    for (uint64_t round = 0; round < rounds; round++) {
        int8_t b = factor;
        for (size_t i = 0; i < LANES; i++) sum += a[i] * b;
    }
    factor = sum == INT32_MIN ? 2 : 1;  // uses the sum
    return rounds * LANES * OPS;
}
