// SPDX-License-Identifier: Apache-2.0
// What instructions this processor can run under this system.
//
// Detection is cut in two: a reader of raw facts that only works on its own machine (cpuid, HWCAP, sysctl), and a
// pure function from those facts to sp_cpu, which is built everywhere, so that any machine tests all of them.
// What a system merely advertises is still to be proven on each worker's core by the matrix kernels' self-test
// (probe/selftest.h). SME and SME2 are two features: no rule derives the second from the first.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sp_arch { SP_ARCH_OTHER, SP_ARCH_X86_64, SP_ARCH_ARM64 } sp_arch;

typedef struct sp_cpu {
    sp_arch arch;
    char brand[64];  // what the system calls the processor; "" when it does not say
    uint64_t midr;   // MIDR_EL1 of the first CPU, which names the core's maker and model; 0: unknown
    uint32_t svl;    // bytes of a streaming vector of the calling thread; 0 without SME (cpu/vector.h raises it)
#define SP_FEATURE(name, text) bool name;
#include "cpu/features.inc"
#undef SP_FEATURE
} sp_cpu;

// Fills `out` for this machine. Never fails: what cannot be asked is absent.
void sp_cpu_detect(sp_cpu *out);

const char *sp_arch_name(sp_arch arch);

// The features as a table, in order of features.inc, for reports.
typedef struct sp_feature {
    const char *name, *text;
    size_t offset;  // of the bool in sp_cpu
} sp_feature;

const sp_feature *sp_feature_table(size_t *count);

// x86-64: registers of cpuid leaves 1 and 7 (subleaf 0), and XCR0 (0 where the system has not turned XSAVE on).
typedef struct sp_x86_facts {
    uint32_t leaf1_ecx, leaf7_ebx, leaf7_ecx;
    uint64_t xcr0;
} sp_x86_facts;
void sp_cpu_from_x86(sp_cpu *out, const sp_x86_facts *facts);

// Bytes that a streaming vector can have: a power of two, 16 to 256.
bool sp_svl_valid(uint64_t bytes);

// Linux on arm64: the auxiliary vector's words, and the answer of prctl(PR_SME_GET_VL), negative on error.
typedef struct sp_hwcap_facts {
    uint64_t hwcap, hwcap2;
    long sme_vl;
} sp_hwcap_facts;
void sp_cpu_from_hwcap(sp_cpu *out, const sp_hwcap_facts *facts);

// Apple: a look-up of integer sysctls by name; false when there is no such name.
typedef bool (*sp_sysctl_fn)(const char *name, uint64_t *value);
void sp_cpu_from_sysctl(sp_cpu *out, sp_sysctl_fn look_up);

#ifdef __APPLE__
bool sp_sysctl(const char *name, uint64_t *value);  // this machine's own
#endif
