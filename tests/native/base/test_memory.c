// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "test.h"

static bool all_zero(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0) return false;
    return true;
}

SP_TEST(memory_blocks_are_aligned_and_zero) {
    for (size_t bytes = 0; bytes < 5000; bytes += 37) {
        unsigned char *block = sp_alloc(bytes, 1);
        SP_REQUIRE(block != NULL);
        SP_CHECK_INT((uintptr_t)block % SP_ALIGN, 0);
        SP_CHECK(all_zero(block, bytes));
        memset(block, 0xff, bytes);
        sp_free(block);
    }
    void *line = sp_alloc_aligned(SP_LINE, 3, 5);
    SP_REQUIRE(line != NULL);
    SP_CHECK_INT((uintptr_t)line % SP_LINE, 0);
    sp_free(line);
    sp_free(NULL);
}

SP_TEST(memory_overflow_is_refused) {
    size_t out = 7;
    SP_CHECK(!sp_size_mul(SIZE_MAX / 2 + 1, 2, &out));
    SP_CHECK(!sp_size_add(SIZE_MAX, 1, &out));
    SP_CHECK_INT(out, 7);
    SP_CHECK(sp_size_mul(SIZE_MAX / 2, 2, &out) && out == SIZE_MAX - 1);
    SP_CHECK(sp_alloc(SIZE_MAX / 2 + 1, 2) == NULL);
    SP_CHECK(sp_alloc(SIZE_MAX, 1) == NULL);
    sp_region region;
    SP_CHECK_INT(sp_region_reserve(&region, SIZE_MAX), SP_ERR_MEMORY);
    SP_CHECK(region.base == NULL);
    SP_CHECK_INT(sp_region_reserve(&region, 0), SP_ERR_MEMORY);
}

SP_TEST(memory_failing_allocator_fails_from_the_nth) {
    sp_memory_fail_from(2);
    void *first = sp_alloc(8, 1);
    void *second = sp_alloc(8, 1);
    sp_region region;
    sp_status third = sp_region_reserve(&region, 4096);
    sp_memory_fail_from(0);
    void *fourth = sp_alloc(8, 1);
    SP_CHECK(first != NULL);
    SP_CHECK(second == NULL);
    SP_CHECK_INT(third, SP_ERR_MEMORY);
    SP_CHECK(fourth != NULL);
    sp_free(first);
    sp_free(fourth);
}

SP_TEST(memory_region_is_lazy_and_discards_to_zero) {
    sp_region region;
    size_t huge = (size_t)1 << 36;  // far more than any test machine has
    SP_CHECK_INT(sp_region_reserve(&region, huge), SP_OK);
    if (region.base == NULL) return;
    unsigned char *bytes = region.base;
    SP_CHECK(all_zero(bytes + huge - 4096, 4096));
    memset(bytes, 0xab, 100000);
    SP_CHECK_INT(sp_region_discard(&region, 100, 90000), SP_OK);
    SP_CHECK_INT(bytes[99], 0xab);
    SP_CHECK(all_zero(bytes + 100, 90000));
    SP_CHECK_INT(bytes[90100], 0xab);
    SP_CHECK_INT(sp_region_discard(&region, 10, 20), SP_OK);  // within one page
    SP_CHECK_INT(bytes[9], 0xab);
    SP_CHECK(all_zero(bytes + 10, 20));
    SP_CHECK_INT(bytes[30], 0xab);
    SP_CHECK_INT(sp_region_discard(&region, huge, 1), SP_ERR_ARGUMENT);
    SP_CHECK_INT(sp_region_discard(&region, SIZE_MAX, 2), SP_ERR_ARGUMENT);
    sp_region_release(&region);
    SP_CHECK(region.base == NULL);
    sp_region_release(&region);
}
