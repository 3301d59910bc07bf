// SPDX-License-Identifier: Apache-2.0
// Runs the registered tests in order of name, in this process, and reports on standard output.
#include "test.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernel.h"

enum { MAX_REPORTS = 20 };  // of one test; a broken kernel must not print a million lines

static sp_test *tests;  // sorted by name
static const sp_test *running;
static atomic_int failures;  // of the running test
static bool skipped;
static _Thread_local char label[200];

void sp_test_register(sp_test *test) {
    sp_test **at = &tests;
    while (*at != NULL && strcmp((*at)->name, test->name) < 0) at = &(*at)->next;
    test->next = *at;
    *at = test;
}

void sp_test_label(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(label, sizeof label, format, args);
    va_end(args);
}

void sp_test_fail(const char *file, int line, const char *format, ...) {
    int earlier = atomic_fetch_add(&failures, 1);
    if (earlier >= MAX_REPORTS) {
        if (earlier == MAX_REPORTS) printf("  (further failures of %s are not shown)\n", running->name);
        return;
    }
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("%s:%d: %s: %s%s%s%s\n", file, line, running->name, text, label[0] ? " [" : "", label, label[0] ? "]" : "");
}

void sp_test_skip(const char *reason) {
    skipped = true;
    printf("skipped %s: %s\n", running->name, reason);
}

uint64_t sp_test_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

bool sp_test_int(const char *file, int line, const char *what, long long got, long long want) {
    if (got == want) return true;
    sp_test_fail(file, line, "%s is %lld, not %lld", what, got, want);
    return false;
}

bool sp_test_text(const char *file, int line, const char *what, const char *got, const char *want) {
    if (strcmp(got, want) == 0) return true;
    sp_test_fail(file, line, "%s is \"%s\", not \"%s\"", what, got, want);
    return false;
}

bool sp_test_bytes(const char *file, int line, const char *what, const void *got, const void *want, size_t size) {
    const unsigned char *a = got, *b = want;
    for (size_t i = 0; i < size; i++) {
        if (a[i] != b[i]) {
            sp_test_fail(file, line, "%s: byte %zu of %zu is 0x%02x, not 0x%02x", what, i, size, a[i], b[i]);
            return false;
        }
    }
    return true;
}

static uint32_t bits(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

bool sp_test_floats(const char *file, int line, const char *what, const float *got, const float *want, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (bits(got[i]) != bits(want[i]) && !(isnan(got[i]) && isnan(want[i]))) {
            sp_test_fail(file, line, "%s: element %zu of %zu is %a, not %a (0x%08" PRIx32 ", 0x%08" PRIx32 ")", what, i,
                         count, (double)got[i], (double)want[i], bits(got[i]), bits(want[i]));
            return false;
        }
    }
    return true;
}

typedef enum outcome { PASSED, FAILED, SKIPPED } outcome;

static outcome run(const sp_test *test) {
    running = test;
    skipped = false;
    label[0] = '\0';
    atomic_store(&failures, 0);
    test->run();
    return atomic_load(&failures) > 0 ? FAILED : skipped ? SKIPPED : PASSED;
}

// The tiers whose kernels the tests run here, for who wants to be sure that some of them are among these.
static void print_tiers(void) {
    sp_cpu cpu;
    sp_cpu_detect(&cpu);
    const uint32_t tiers = sp_kernel_tiers_supported(&cpu) & sp_kernel_tiers_built();
    for (int tier = 0; tier < SP_TIER_COUNT; tier++)
        if (tiers >> tier & 1) puts(sp_tier_name((sp_tier)tier));
}

int main(int argc, char **argv) {
    static const char *const words[] = {"ok", "FAILED", "skipped"};
    const char *filter = "";
    bool list = false, verbose = false;
    for (int i = 1; i < argc; i++) {
        list |= strcmp(argv[i], "--list") == 0;
        verbose |= strcmp(argv[i], "-v") == 0;
        filter = argv[i][0] == '-' ? filter : argv[i];
        if (strcmp(argv[i], "--tiers") == 0) {
            print_tiers();
            return EXIT_SUCCESS;
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);  // what a crashing test printed is not lost
    int count[3] = {0, 0, 0};
    for (const sp_test *test = tests; test != NULL; test = test->next) {
        if (strstr(test->name, filter) == NULL) continue;
        if (list) {
            puts(test->name);
            continue;
        }
        outcome result = run(test);
        count[result]++;
        if (verbose || result == FAILED) printf("%s %s\n", test->name, words[result]);
    }
    if (list) return EXIT_SUCCESS;
    printf("%d passed, %d failed, %d skipped\n", count[PASSED], count[FAILED], count[SKIPPED]);
    bool nothing = count[PASSED] + count[FAILED] + count[SKIPPED] == 0;  // a filter that matches nothing is a mistake
    return count[FAILED] > 0 || nothing ? EXIT_FAILURE : EXIT_SUCCESS;
}
