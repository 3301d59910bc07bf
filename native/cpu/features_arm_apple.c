// SPDX-License-Identifier: Apache-2.0
// macOS and iOS on arm64: one sysctl per feature. iOS says FEAT_SME = 1 on chips where user code may not enter
// streaming mode; only a vector length above zero means that it may.
#include "cpu/features.h"

static bool has(sp_sysctl_fn look_up, const char *name) {
    uint64_t value = 0;
    return look_up(name, &value) && value != 0;
}

void sp_cpu_from_sysctl(sp_cpu *out, sp_sysctl_fn look_up) {
    *out = (sp_cpu){.arch = SP_ARCH_ARM64, .neon = true};
    out->fp16 = has(look_up, "hw.optional.arm.FEAT_FP16") || has(look_up, "hw.optional.neon_fp16");
    out->dotprod = has(look_up, "hw.optional.arm.FEAT_DotProd");
    out->i8mm = has(look_up, "hw.optional.arm.FEAT_I8MM");
    out->bf16 = has(look_up, "hw.optional.arm.FEAT_BF16");
    uint64_t svl = 0;
    look_up("hw.optional.arm.sme_max_svl_b", &svl);
    out->sme = has(look_up, "hw.optional.arm.FEAT_SME") && sp_svl_valid(svl);
    out->sme2 = out->sme && has(look_up, "hw.optional.arm.FEAT_SME2");
    out->sme_i16i64 = out->sme && has(look_up, "hw.optional.arm.FEAT_SME_I16I64");
    out->sme_fa64 = out->sme && has(look_up, "hw.optional.arm.FEAT_SME_FA64");
    out->svl = out->sme ? (uint32_t)svl : 0;
}

#ifdef __APPLE__
#include <sys/sysctl.h>

bool sp_sysctl(const char *name, uint64_t *value) {
    uint64_t answer = 0;  // 4-byte answers fill the low half: these machines are little-endian
    size_t size = sizeof answer;
    if (sysctlbyname(name, &answer, &size, NULL, 0) != 0) return false;
    *value = answer;
    return true;
}

#ifdef __aarch64__
void sp_cpu_detect(sp_cpu *out) {
    sp_cpu_from_sysctl(out, sp_sysctl);
    size_t size = sizeof out->brand;
    if (sysctlbyname("machdep.cpu.brand_string", out->brand, &size, NULL, 0) != 0) out->brand[0] = '\0';
}
#endif
#endif
