// SPDX-License-Identifier: Apache-2.0
// The 16 lanes of every row sum, in scalar form (kernel/families.h): element i goes to lane i % 16, then this tree.
#pragma once

// l[j] += l[j+8], l[j] += l[j+4], l[j] += l[j+2], l[0] + l[1]. Overwrites the lanes.
static inline float sp_lanes_sum(float lanes[16]) {
    for (int width = 8; width >= 2; width /= 2)
        for (int j = 0; j < width; ++j) lanes[j] += lanes[j + width];
    return lanes[0] + lanes[1];
}
