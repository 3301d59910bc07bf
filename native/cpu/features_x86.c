// SPDX-License-Identifier: Apache-2.0
// x86-64: cpuid says what the processor has, XCR0 which registers the system saves on a switch. Without the second
// the first is worth nothing: virtual machines and old kernels clear it.
#include "cpu/features.h"

#include <string.h>

enum { OSXSAVE = 27 };

static bool bit(uint64_t word, unsigned n) { return word >> n & 1; }

void sp_cpu_from_x86(sp_cpu *out, const sp_x86_facts *facts) {
    *out = (sp_cpu){.arch = SP_ARCH_X86_64};
    bool saves = bit(facts->leaf1_ecx, OSXSAVE);
    bool ymm = saves && (facts->xcr0 & 0x06) == 0x06;  // SSE and AVX state
    bool zmm = ymm && (facts->xcr0 & 0xe0) == 0xe0;    // mask registers, upper halves, upper sixteen
    bool avx = ymm && bit(facts->leaf1_ecx, 28);
    out->fma = avx && bit(facts->leaf1_ecx, 12);
    out->f16c = avx && bit(facts->leaf1_ecx, 29);
    out->avx2 = avx && bit(facts->leaf7_ebx, 5);
    out->avx512f = zmm && avx && bit(facts->leaf7_ebx, 16);
    out->avx512dq = out->avx512f && bit(facts->leaf7_ebx, 17);
    out->avx512bw = out->avx512f && bit(facts->leaf7_ebx, 30);
    out->avx512vl = out->avx512f && bit(facts->leaf7_ebx, 31);
    out->avx512vnni = out->avx512f && bit(facts->leaf7_ecx, 11);
}

#ifdef __x86_64__
#include <cpuid.h>

static uint64_t read_xcr0(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

// The 48 bytes of leaves 0x80000002..4, without the blanks that some vendors pad them with.
static void read_brand(char brand[64]) {
    uint32_t words[12] = {0};
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t *w = words + 4 * i;
        if (!__get_cpuid(0x80000002u + i, &w[0], &w[1], &w[2], &w[3])) return;
    }
    char text[sizeof words + 1] = {0};
    memcpy(text, words, sizeof words);
    const char *start = text + strspn(text, " ");
    size_t length = strlen(start);
    while (length > 0 && start[length - 1] == ' ') length--;
    memcpy(brand, start, length);
    brand[length] = '\0';
}

void sp_cpu_detect(sp_cpu *out) {
    sp_x86_facts facts = {0};
    uint32_t eax, ebx, ecx, edx;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) {
        facts.leaf1_ecx = ecx;
        facts.xcr0 = bit(ecx, OSXSAVE) ? read_xcr0() : 0;
    }
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
        facts.leaf7_ebx = ebx;
        facts.leaf7_ecx = ecx;
    }
    sp_cpu_from_x86(out, &facts);
    read_brand(out->brand);
}
#endif
