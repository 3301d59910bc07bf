// SPDX-License-Identifier: Apache-2.0
// The harness of the C tests: one program, tests that register themselves, checks that name their place.
//
//     SP_TEST(queue_hands_out_every_tile) {
//         SP_REQUIRE(setup() == SP_OK);          // a failure ends this test
//         for (...) {
//             sp_test_label("tiles=%u", tiles);  // printed beside every failure that follows
//             SP_CHECK_INT(got, want);           // a failure is recorded and the test goes on
//         }
//     }
//
// `sp_test` runs all, `sp_test WORD` those whose name contains WORD, `-v` names each; `sp_test --list` prints the
// names, `sp_test --tiers` the tiers that this machine runs. Checks may be used from any thread; labels belong to the
// thread that set them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sp_test {
    const char *name;
    void (*run)(void);
    struct sp_test *next;
} sp_test;

// Adds a test to the program's list; SP_TEST calls it before main.
void sp_test_register(sp_test *test);

// Names the case at hand (printf style, cut at 199 characters); forgotten when the next test starts.
__attribute__((format(printf, 1, 2))) void sp_test_label(const char *format, ...);

// Records a failure of the running test and prints it.
__attribute__((format(printf, 3, 4))) void sp_test_fail(const char *file, int line, const char *format, ...);

// Marks the running test as skipped: it needs what this machine lacks. Follow it with `return`.
void sp_test_skip(const char *reason);

// Deterministic random 64 bits (splitmix64): the same sequence for the same initial `*state` everywhere.
uint64_t sp_test_random(uint64_t *state);

// Comparisons; they return whether the check held.
bool sp_test_int(const char *file, int line, const char *what, long long got, long long want);
bool sp_test_text(const char *file, int line, const char *what, const char *got, const char *want);
bool sp_test_bytes(const char *file, int line, const char *what, const void *got, const void *want, size_t size);
bool sp_test_floats(const char *file, int line, const char *what, const float *got, const float *want, size_t count);

#define SP_TEST(id)                                                        \
    static void id(void);                                                  \
    __attribute__((constructor)) static void sp_test_register_##id(void) { \
        static sp_test entry = {#id, id, NULL};                            \
        sp_test_register(&entry);                                          \
    }                                                                      \
    static void id(void)

#define SP_CHECK(condition) ((condition) ? (void)0 : sp_test_fail(__FILE__, __LINE__, "%s does not hold", #condition))

#define SP_REQUIRE(condition)                                                 \
    do {                                                                      \
        if (!(condition)) {                                                   \
            sp_test_fail(__FILE__, __LINE__, "%s does not hold", #condition); \
            return;                                                           \
        }                                                                     \
    } while (0)

#define SP_CHECK_INT(got, want) ((void)sp_test_int(__FILE__, __LINE__, #got, (long long)(got), (long long)(want)))

#define SP_CHECK_TEXT(got, want) ((void)sp_test_text(__FILE__, __LINE__, #got, (got), (want)))

// Every byte equal; the first difference is reported by its offset.
#define SP_CHECK_BYTES(got, want, size) ((void)sp_test_bytes(__FILE__, __LINE__, #got, (got), (want), (size)))

// Every float equal bit for bit, except that any NaN equals any NaN; the first difference is reported by its index.
#define SP_CHECK_FLOATS(got, want, count) ((void)sp_test_floats(__FILE__, __LINE__, #got, (got), (want), (count)))
