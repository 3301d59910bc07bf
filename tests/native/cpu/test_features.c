// SPDX-License-Identifier: Apache-2.0
// Features from raw facts of machines other than this one.
#include <string.h>

#include "cpu/features.h"
#include "test.h"

#define BIT(n) ((uint64_t)1 << (n))

static const sp_x86_facts zen4 = {
    .leaf1_ecx = BIT(12) | BIT(27) | BIT(28) | BIT(29),
    .leaf7_ebx = BIT(5) | BIT(16) | BIT(17) | BIT(30) | BIT(31),
    .leaf7_ecx = BIT(11),
    .xcr0 = 0xe7,
};

SP_TEST(features_x86_all) {
    sp_cpu cpu;
    sp_cpu_from_x86(&cpu, &zen4);
    SP_CHECK(cpu.avx2 && cpu.fma && cpu.f16c);
    SP_CHECK(cpu.avx512f && cpu.avx512bw && cpu.avx512dq && cpu.avx512vl && cpu.avx512vnni);
    SP_CHECK(!cpu.neon && !cpu.sme);
}

SP_TEST(features_x86_need_the_system_to_save_registers) {
    sp_cpu cpu;
    sp_x86_facts facts = zen4;
    facts.xcr0 = 0x07;  // no ZMM state
    sp_cpu_from_x86(&cpu, &facts);
    SP_CHECK(cpu.avx2 && cpu.fma && !cpu.avx512f && !cpu.avx512vnni);
    facts.xcr0 = 0xe3;  // no YMM state: nothing above it either
    sp_cpu_from_x86(&cpu, &facts);
    SP_CHECK(!cpu.avx2 && !cpu.fma && !cpu.f16c && !cpu.avx512f);
    facts = zen4;
    facts.leaf1_ecx &= ~(uint32_t)BIT(27);  // XSAVE not turned on
    sp_cpu_from_x86(&cpu, &facts);
    SP_CHECK(!cpu.avx2 && !cpu.avx512f);
    facts = zen4;
    facts.leaf7_ebx &= ~(uint32_t)BIT(16);  // no foundation: its extensions do not count
    sp_cpu_from_x86(&cpu, &facts);
    SP_CHECK(cpu.avx2 && !cpu.avx512bw && !cpu.avx512vnni);
}

SP_TEST(features_linux_sme_and_sme2_are_two) {
    sp_cpu cpu;
    sp_hwcap_facts facts = {BIT(1) | BIT(9) | BIT(10) | BIT(20), BIT(13) | BIT(14) | BIT(23) | BIT(30), 64};
    sp_cpu_from_hwcap(&cpu, &facts);
    SP_CHECK(cpu.neon && cpu.fp16 && cpu.dotprod && cpu.i8mm && cpu.bf16);
    SP_CHECK(cpu.sme && !cpu.sme2 && cpu.sme_fa64 && !cpu.sve);
    SP_CHECK_INT(cpu.svl, 64);
    facts.hwcap2 |= BIT(37);
    facts.sme_vl = (long)(32 | BIT(17));  // flags above the length
    sp_cpu_from_hwcap(&cpu, &facts);
    SP_CHECK(cpu.sme2);
    SP_CHECK_INT(cpu.svl, 32);
    facts.hwcap2 &= ~BIT(23);  // SME2 without SME is nonsense
    sp_cpu_from_hwcap(&cpu, &facts);
    SP_CHECK(!cpu.sme2 && !cpu.sme_fa64 && cpu.svl == 0);
}

// A virtual machine shows the bits and answers the length with an error.
SP_TEST(features_linux_sme_without_length_is_off) {
    sp_cpu cpu;
    const long answers[] = {-1, 0, 8};
    for (int i = 0; i < 3; i++) {
        sp_hwcap_facts facts = {BIT(1), BIT(23) | BIT(37), answers[i]};
        sp_cpu_from_hwcap(&cpu, &facts);
        SP_CHECK(cpu.neon && !cpu.sme && !cpu.sme2 && cpu.svl == 0);
    }
}

SP_TEST(features_linux_dotprod_without_i8mm) {
    sp_cpu cpu;
    sp_hwcap_facts facts = {BIT(1) | BIT(9) | BIT(10) | BIT(20), 0, -1};
    sp_cpu_from_hwcap(&cpu, &facts);
    SP_CHECK(cpu.dotprod && !cpu.i8mm && !cpu.bf16);
}

static bool answer(const char *const *names, const char *name, uint64_t *value) {
    for (; *names != NULL; names++) {
        if (strcmp(*names, name) == 0) {
            *value = 1;
            return true;
        }
    }
    return false;
}

static bool phone(const char *name, uint64_t *value) {
    static const char *const names[] = {"hw.optional.arm.FEAT_SME", "hw.optional.arm.FEAT_SME2",
                                        "hw.optional.arm.FEAT_I8MM", NULL};
    return answer(names, name, value);
}

static bool laptop(const char *name, uint64_t *value) {
    if (strcmp(name, "hw.optional.arm.sme_max_svl_b") == 0) {
        *value = 64;
        return true;
    }
    return phone(name, value);
}

SP_TEST(features_apple_sme_needs_a_vector_length) {
    sp_cpu cpu;
    sp_cpu_from_sysctl(&cpu, phone);
    SP_CHECK(cpu.neon && cpu.i8mm && !cpu.sme && !cpu.sme2 && cpu.svl == 0);
    sp_cpu_from_sysctl(&cpu, laptop);
    SP_CHECK(cpu.sme && cpu.sme2 && !cpu.sve && !cpu.sme_fa64);
    SP_CHECK_INT(cpu.svl, 64);
}

SP_TEST(features_of_this_machine) {
    sp_cpu cpu;
    size_t count;
    sp_cpu_detect(&cpu);
    const sp_feature *table = sp_feature_table(&count);
    SP_CHECK(count > 0 && table[0].offset < sizeof cpu);
#ifdef __x86_64__
    SP_CHECK_INT(cpu.arch, SP_ARCH_X86_64);
    __builtin_cpu_init();
    SP_CHECK_INT(cpu.avx2, __builtin_cpu_supports("avx2") != 0);
    SP_CHECK_INT(cpu.fma, __builtin_cpu_supports("fma") != 0);
    SP_CHECK_INT(cpu.avx512f, __builtin_cpu_supports("avx512f") != 0);
    SP_CHECK_INT(cpu.avx512bw, __builtin_cpu_supports("avx512bw") != 0);
    SP_CHECK_INT(cpu.avx512vl, __builtin_cpu_supports("avx512vl") != 0);
    SP_CHECK_INT(cpu.avx512vnni, __builtin_cpu_supports("avx512vnni") != 0);
#endif
}
