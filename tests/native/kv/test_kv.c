// SPDX-License-Identifier: Apache-2.0
// The paged store: pages are distinct, zeroed, counted by their holders, and
// laid out without overlaps.
#include "kv/kv.h"

#include <string.h>

#include "test.h"

static sp_kv *make(uint32_t head_dim, bool f32, uint32_t pages) {
    sp_kv *kv = NULL;
    const sp_kv_config config = {.layers = 3, .heads = 2, .head_dim = head_dim, .f32 = f32, .pages = pages};
    SP_CHECK_INT(sp_kv_create(&kv, &config), SP_OK);
    return kv;
}

// Bytes of a page that differ from `value`.
static size_t count_bytes_unlike(const sp_kv *kv, int32_t page, uint8_t value) {
    size_t count = 0;
    for (uint32_t layer = 0; layer < kv->config.layers; layer++) {
        for (uint32_t head = 0; head < kv->config.heads; head++) {
            const uint8_t *at = sp_kv_keys(kv, page, layer, head);
            for (size_t b = 0; b < kv->head_bytes; b++) count += at[b] != value;
        }
    }
    return count;
}

static void fill_page(const sp_kv *kv, int32_t page, int value) {
    for (uint32_t layer = 0; layer < kv->config.layers; layer++)
        for (uint32_t head = 0; head < kv->config.heads; head++)
            memset(sp_kv_keys(kv, page, layer, head), value, kv->head_bytes);
}

SP_TEST(kv_pages_are_zeroed_and_distinct) {
    enum { PAGES = 5 };
    sp_kv *kv = make(24, false, PAGES);
    int32_t pages[PAGES];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < PAGES; i++) {
            pages[i] = sp_kv_alloc(kv);
            SP_REQUIRE(pages[i] >= 0 && pages[i] < PAGES);
            SP_CHECK_INT(count_bytes_unlike(kv, pages[i], 0), 0);
            fill_page(kv, pages[i], i + 1);
        }
        SP_CHECK_INT(sp_kv_alloc(kv), -1);
        for (int i = 0; i < PAGES; i++) {
            SP_CHECK_INT(count_bytes_unlike(kv, pages[i], (uint8_t)(i + 1)), 0);
            sp_kv_release(kv, pages[i]);
        }
        SP_CHECK_INT(kv->free_count, PAGES);
    }
    sp_kv_destroy(kv);
}

SP_TEST(kv_page_is_free_when_its_last_holder_leaves) {
    sp_kv *kv = make(8, false, 2);
    const int32_t shared = sp_kv_alloc(kv), other = sp_kv_alloc(kv);
    sp_kv_hold(kv, shared);
    sp_kv_release(kv, shared);
    SP_CHECK_INT(sp_kv_alloc(kv), -1);
    sp_kv_release(kv, shared);
    SP_CHECK_INT(kv->free_count, 1);
    SP_CHECK_INT(sp_kv_alloc(kv), shared);
    SP_CHECK(other != shared);
    sp_kv_destroy(kv);
}

// The parts of all pages tile the store, [layer][head][page]: each starts where
// the one before ends, on a cache line.
SP_TEST(kv_store_is_tiled) {
    for (uint32_t head_dim = 8; head_dim <= 256; head_dim += 8) {
        for (int f32 = 0; f32 < 2; f32++) {
            sp_kv *kv = make(head_dim, f32, 2);
            const size_t element = f32 ? 4 : 2, keys = SP_KV_PAGE * head_dim * element;
            const size_t values = SP_KV_PAGE * (((size_t)head_dim + 15) / 16 * 16) * element;
            sp_test_label("head_dim=%u f32=%d", head_dim, f32);
            const uint8_t *at = sp_kv_keys(kv, 0, 0, 0);
            for (uint32_t part = 0; part < 3 * 2 * 2; part++) {
                const int32_t page = (int32_t)(part % 2);
                SP_CHECK(sp_kv_keys(kv, page, part / 4, part / 2 % 2) == at);
                SP_CHECK(sp_kv_values(kv, page, part / 4, part / 2 % 2) == at + keys);
                SP_CHECK_INT((uintptr_t)at % SP_ALIGN, 0);
                at += keys + values;
            }
            SP_CHECK_INT(at - (uint8_t *)sp_kv_keys(kv, 0, 0, 0), 2 * kv->page_bytes);
            sp_kv_destroy(kv);
        }
    }
}

SP_TEST(kv_refuses_what_cannot_be) {
    const sp_kv_config good = {.layers = 1, .heads = 1, .head_dim = 8, .pages = 1};
    sp_kv_config wrong[6];
    for (int i = 0; i < 6; i++) wrong[i] = good;
    wrong[0].layers = 0, wrong[1].heads = 0, wrong[2].head_dim = 0, wrong[3].head_dim = 12, wrong[4].pages = 0;
    wrong[5].pages = (uint32_t)INT32_MAX + 1;
    sp_kv *kv = NULL;
    for (int i = 0; i < 6; i++) SP_CHECK_INT(sp_kv_create(&kv, &wrong[i]), SP_ERR_ARGUMENT);
    SP_CHECK(kv == NULL);
    sp_kv_destroy(NULL);
}

SP_TEST(kv_reports_memory_that_cannot_be_had) {
    // The second one's page has 2^79 bytes, which is 0 in 64 bits.
    const sp_kv_config huge[] = {
        {.layers = 1000, .heads = 1000, .head_dim = 256, .f32 = true, .pages = INT32_MAX},
        {.layers = 1u << 31, .heads = 1u << 31, .head_dim = 256, .f32 = true, .pages = 1},
    };
    sp_kv *kv = NULL;
    for (int i = 0; i < 2; i++) SP_CHECK_INT(sp_kv_create(&kv, &huge[i]), SP_ERR_MEMORY);
    const sp_kv_config small = {.layers = 1, .heads = 1, .head_dim = 8, .pages = 4};
    sp_memory_fail_from(1);
    SP_CHECK_INT(sp_kv_create(&kv, &small), SP_ERR_MEMORY);
    sp_memory_fail_from(0);
    SP_CHECK(kv == NULL);
}
