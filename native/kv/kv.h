// SPDX-License-Identifier: Apache-2.0
// The paged store of keys and values.
//
// A page holds SP_KV_PAGE positions of one sequence for all layers, so it is the unit of allocation, sharing and
// saving. In memory its parts lie apart: the store is [layer][head][page], so that the pages of a sequence, which are
// mostly handed out one after the other, are one long stream for whoever reads a head. Each part of a page is
//
//   keys    four panels of 16 positions, [head_dim][16] each
//   values  [64][padded head_dim], rows padded with zeros to a multiple of 16
//
// Elements are float16, or float32 for checks. Pages come zeroed; unused bytes stay zero.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

#define SP_KV_PAGE 64

typedef struct sp_kv_config {
    uint32_t layers, heads, head_dim;  // heads: key/value heads
    bool f32;
    uint32_t pages;
} sp_kv_config;

typedef struct sp_kv {
    sp_kv_config config;
    size_t element;     // bytes of one
    size_t value_row;   // elements of a padded value row
    size_t head_bytes;  // keys and values of one head and layer
    size_t page_bytes;
    sp_region store;
    uint32_t *holders;  // per page: who holds it, 0 = free
    int32_t *free;      // stack of free pages
    uint32_t free_count;
} sp_kv;

// Reserves address space for all pages; memory is taken as pages are first written.
sp_status sp_kv_create(sp_kv **out, const sp_kv_config *config);
void sp_kv_destroy(sp_kv *kv);

// A zeroed page with one holder, or -1 if none is free.
int32_t sp_kv_alloc(sp_kv *kv);
// One more holder of a page (a shared prefix).
void sp_kv_hold(sp_kv *kv, int32_t page);
// One holder less; the last one frees the page.
void sp_kv_release(sp_kv *kv, int32_t page);

static inline void *sp_kv_keys(const sp_kv *kv, int32_t page, uint32_t layer, uint32_t head) {
    const size_t part = ((size_t)layer * kv->config.heads + head) * kv->config.pages + (size_t)page;
    return (uint8_t *)kv->store.base + part * kv->head_bytes;
}
static inline void *sp_kv_values(const sp_kv *kv, int32_t page, uint32_t layer, uint32_t head) {
    const size_t keys = (size_t)kv->config.head_dim * SP_KV_PAGE * kv->element;
    return (uint8_t *)sp_kv_keys(kv, page, layer, head) + keys;
}
