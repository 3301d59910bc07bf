// SPDX-License-Identifier: Apache-2.0
// What the machine can do at best, measured: the two limits that a roofline is made of.
//
// The probes start their own threads instead of using the pool: they measure the machine, not our scheduling.
// Each call takes the best of a few short rounds, since anything else that runs can only make a round slower.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "kernel/kernel.h"

#define SP_PROBE_THREADS 256  // at most

// Bytes per second that `threads` threads together read from `bytes` of memory, cut evenly between them.
// Make `bytes` several times the last-level cache. The memory is taken for the call and zero-filled.
sp_status sp_probe_read_bandwidth(unsigned threads, size_t bytes, double *bytes_per_second);

// Multiplications and additions of 8-bit integers into 32-bit sums per second (a multiply-add counts as two) that
// `threads` threads together reach with the best instruction of `tier` on operands that stay in registers.
// The machine must have the tier.
sp_status sp_probe_int8_peak(unsigned threads, sp_tier tier, double *ops_per_second);

// ---- parts

// One thread's share of a round; returns the work done, in the probe's unit.
typedef uint64_t (*sp_probe_fn)(void *state, unsigned index);

// Runs `fn` once on each of `threads` threads, which start together; work done by all per second, from the first
// start to the last end.
sp_status sp_probe_round(unsigned threads, sp_probe_fn fn, void *state, double *work_per_second);

// Register-resident multiply-add loops: runs `rounds` rounds, returns the operations they made.
typedef uint64_t (*sp_probe_loop)(uint64_t rounds);

// The loop of a tier, NULL if it has none of its own or was not built.
sp_probe_loop sp_probe_int8_loop(sp_tier tier);

uint64_t sp_probe_int8_ref(uint64_t rounds);
uint64_t sp_probe_int8_avx2(uint64_t rounds);
uint64_t sp_probe_int8_avx512(uint64_t rounds);
uint64_t sp_probe_int8_neon(uint64_t rounds);
uint64_t sp_probe_int8_neon_dotprod(uint64_t rounds);
uint64_t sp_probe_int8_neon_i8mm(uint64_t rounds);
