// SPDX-License-Identifier: Apache-2.0
#include "cpu/features.h"

static const sp_feature features[] = {
#define SP_FEATURE(name, text) {#name, text, offsetof(sp_cpu, name)},
#include "cpu/features.inc"
#undef SP_FEATURE
};

const sp_feature *sp_feature_table(size_t *count) {
    *count = sizeof features / sizeof features[0];
    return features;
}

const char *sp_arch_name(sp_arch arch) {
    static const char *const names[] = {
        [SP_ARCH_OTHER] = "other", [SP_ARCH_X86_64] = "x86_64", [SP_ARCH_ARM64] = "arm64"};
    return names[arch];
}

bool sp_svl_valid(uint64_t bytes) { return bytes >= 16 && bytes <= 256 && (bytes & (bytes - 1)) == 0; }

#if !defined(__x86_64__) && !(defined(__aarch64__) && (defined(__linux__) || defined(__APPLE__)))
void sp_cpu_detect(sp_cpu *out) { *out = (sp_cpu){.arch = SP_ARCH_OTHER}; }
#endif
