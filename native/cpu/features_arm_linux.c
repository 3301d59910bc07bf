// SPDX-License-Identifier: Apache-2.0
// Linux and Android on arm64: the kernel lists in AT_HWCAP and AT_HWCAP2 what it supports. The bit numbers are the
// kernel's ABI, written here because older headers lack the newer ones.
#include "cpu/features.h"

static bool bit(uint64_t word, unsigned n) { return word >> n & 1; }

void sp_cpu_from_hwcap(sp_cpu *out, const sp_hwcap_facts *facts) {
    *out = (sp_cpu){.arch = SP_ARCH_ARM64};
    out->neon = bit(facts->hwcap, 1);
    out->fp16 = bit(facts->hwcap, 9) && bit(facts->hwcap, 10);  // scalar and vector
    out->dotprod = bit(facts->hwcap, 20);
    out->sve = bit(facts->hwcap, 22);
    out->i8mm = bit(facts->hwcap2, 13);
    out->bf16 = bit(facts->hwcap2, 14);
    // Flags sit above the length. A system that advertises SME and cannot tell the length (some virtual machines) has
    // no SME.
    uint32_t svl = facts->sme_vl > 0 ? (uint32_t)facts->sme_vl & 0xffff : 0;
    out->sme = bit(facts->hwcap2, 23) && sp_svl_valid(svl);
    out->sme2 = out->sme && bit(facts->hwcap2, 37);
    out->sme_i16i64 = out->sme && bit(facts->hwcap2, 24);
    out->sme_fa64 = out->sme && bit(facts->hwcap2, 30);
    out->svl = out->sme ? svl : 0;
}

#if defined(__aarch64__) && defined(__linux__)
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

#include "base/sysfile.h"

#ifndef AT_HWCAP2
#define AT_HWCAP2 26
#endif
#ifndef PR_SME_GET_VL
#define PR_SME_GET_VL 64
#endif

static void read_brand(char *brand, size_t size, uint64_t midr) {
    if (sp_sysfile_line("", brand, size, "/sys/devices/soc0/machine") ||
        sp_sysfile_line("", brand, size, "/proc/device-tree/model")) {
        return;
    }
    if (midr != 0) {
        snprintf(brand, size, "Arm implementer 0x%02x part 0x%03x", (unsigned)(midr >> 24 & 0xff),
                 (unsigned)(midr >> 4 & 0xfff));
    }
}

void sp_cpu_detect(sp_cpu *out) {
    sp_hwcap_facts facts = {getauxval(AT_HWCAP), getauxval(AT_HWCAP2), prctl(PR_SME_GET_VL, 0, 0, 0, 0)};
    sp_cpu_from_hwcap(out, &facts);
    long long midr;
    if (sp_sysfile_int("", &midr, "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1"))
        out->midr = (uint64_t)midr;
    read_brand(out->brand, sizeof out->brand, out->midr);
}
#endif
