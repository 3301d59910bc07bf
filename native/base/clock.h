// SPDX-License-Identifier: Apache-2.0
// The monotonic clock, in nanoseconds from an arbitrary start. Never goes back, does not follow the wall clock.
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t sp_clock_ns(void) {
    struct timespec now;
#ifdef __APPLE__
    clock_gettime(CLOCK_UPTIME_RAW, &now);  // CLOCK_MONOTONIC ticks in microseconds there
#else
    clock_gettime(CLOCK_MONOTONIC, &now);
#endif
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
