// SPDX-License-Identifier: Apache-2.0
#include "kv/kv.h"

#include <stdlib.h>
#include <string.h>

static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

sp_status sp_kv_create(sp_kv **out, const sp_kv_config *config) {
    if (!config->layers || !config->heads || !config->head_dim || config->head_dim % 8 || !config->pages ||
        config->pages > INT32_MAX) {
        return SP_ERR_ARGUMENT;
    }
    sp_kv *kv = calloc(1, sizeof *kv);
    if (!kv) return SP_ERR_MEMORY;
    kv->config = *config;
    kv->element = config->f32 ? sizeof(float) : sizeof(uint16_t);
    kv->value_row = round_up(config->head_dim, 16);
    kv->head_bytes = (config->head_dim + kv->value_row) * SP_KV_PAGE * kv->element;
    size_t layer, bytes;
    if (!sp_size_mul(kv->head_bytes, config->heads, &layer) || !sp_size_mul(layer, config->layers, &kv->page_bytes) ||
        !sp_size_mul(kv->page_bytes, config->pages, &bytes) || sp_region_reserve(&kv->store, bytes) != SP_OK) {
        sp_kv_destroy(kv);
        return SP_ERR_MEMORY;
    }
    kv->holders = calloc(config->pages, sizeof *kv->holders);
    kv->free = malloc(config->pages * sizeof *kv->free);
    if (!kv->holders || !kv->free) {
        sp_kv_destroy(kv);
        return SP_ERR_MEMORY;
    }
    // The stack hands out low page numbers first, so a short conversation touches little memory.
    for (uint32_t i = 0; i < config->pages; i++) kv->free[i] = (int32_t)(config->pages - 1 - i);
    kv->free_count = config->pages;
    *out = kv;
    return SP_OK;
}

void sp_kv_destroy(sp_kv *kv) {
    if (!kv) return;
    sp_region_release(&kv->store);
    free(kv->holders);
    free(kv->free);
    free(kv);
}

int32_t sp_kv_alloc(sp_kv *kv) {
    if (!kv->free_count) return -1;
    const int32_t page = kv->free[--kv->free_count];
    kv->holders[page] = 1;
    for (uint32_t layer = 0; layer < kv->config.layers; layer++)
        for (uint32_t head = 0; head < kv->config.heads; head++)
            memset(sp_kv_keys(kv, page, layer, head), 0, kv->head_bytes);
    return page;
}

void sp_kv_hold(sp_kv *kv, int32_t page) { kv->holders[page]++; }

void sp_kv_release(sp_kv *kv, int32_t page) {
    if (--kv->holders[page] == 0) kv->free[kv->free_count++] = page;
}
