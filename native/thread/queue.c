// SPDX-License-Identifier: Apache-2.0
#include "thread/queue.h"

#include "base/check.h"

enum { UNITS_MAX = 0xffff };

typedef struct position {
    uint32_t generation, back, front;  // units [front, back) are still to be had
} position;

static position unpack(uint64_t word) {
    return (position){(uint32_t)(word >> 32), (uint32_t)(word >> 16 & 0xffff), (uint32_t)(word & 0xffff)};
}

static uint64_t pack(position at) { return (uint64_t)at.generation << 32 | (uint64_t)at.back << 16 | at.front; }

static uint32_t divide_up(uint32_t a, uint32_t b) { return a / b + (a % b != 0); }

static uint32_t clamp(uint32_t x, uint32_t low, uint32_t high) { return x < low ? low : x > high ? high : x; }

// Units of the next grab. Shares shrink as the rest does: early ones are large, which costs few claims and walks
// memory in long strides; late ones are small, so that the workers finish together.
static uint32_t grab_size(uint32_t rest, uint32_t takers, uint32_t least, uint32_t most) {
    uint32_t share = rest / (2 * takers);
    share = share < most ? share : most;
    share = share > least ? share : least;
    return share < rest ? share : rest;
}

// Moves `at` past the next grab of `kind` and returns that grab's units through begin and end.
static void advance(position *at, sp_kind kind, uint64_t grabs, uint32_t takers, uint32_t *begin, uint32_t *end) {
    uint32_t limits = (uint32_t)(grabs >> (32 * kind));
    uint32_t size = grab_size(at->back - at->front, takers, limits & 0xffff, limits >> 16);
    if (kind == SP_KIND_CORE) {
        *end = at->back;
        *begin = at->back -= size;
    } else {
        *begin = at->front;
        *end = at->front += size;
    }
}

// From units to tiles; the last unit may be cut.
static void set_range(sp_grab *grab, uint32_t begin, uint32_t end, uint32_t unit, uint32_t tiles) {
    grab->begin = begin * unit;
    grab->end = end > tiles / unit ? tiles : end * unit;
}

static uint64_t grab_limits(const sp_queue_spec *spec, uint32_t unit) {
    uint64_t grabs = 0;
    for (int kind = 0; kind < SP_KIND_COUNT; kind++) {
        uint32_t most = spec->most[kind] == 0 ? UNITS_MAX : clamp(spec->most[kind] / unit, 1, UNITS_MAX);
        uint32_t least = clamp(spec->least[kind] / unit, 1, most);
        grabs |= ((uint64_t)most << 16 | least) << (32 * kind);
    }
    return grabs;
}

void sp_queue_open(sp_queue *queue, const sp_queue_spec *spec, sp_tile_fn fn, void *ctx, uint32_t takers, sp_kind kind,
                   sp_grab *first) {
    position at = unpack(atomic_load_explicit(&queue->word, memory_order_relaxed));
    SP_ASSERT(at.front == at.back && takers > 0);
    uint32_t unit = spec->tiles > UNITS_MAX ? divide_up(spec->tiles, UNITS_MAX) : 1;
    uint32_t kinds = spec->kinds != 0 ? spec->kinds : 1u << SP_KIND_CORE;
    uint64_t grabs = grab_limits(spec, unit);
    at = (position){at.generation + 1, divide_up(spec->tiles, unit), 0};

    *first = (sp_grab){fn, ctx, 0, 0};
    if (kinds >> kind & 1) {
        uint32_t begin, end;
        advance(&at, kind, grabs, takers, &begin, &end);
        set_range(first, begin, end, unit, spec->tiles);
    }
    atomic_store_explicit(&queue->fn, fn, memory_order_relaxed);
    atomic_store_explicit(&queue->ctx, ctx, memory_order_relaxed);
    atomic_store_explicit(&queue->tiles, spec->tiles, memory_order_relaxed);
    atomic_store_explicit(&queue->unit, unit, memory_order_relaxed);
    atomic_store_explicit(&queue->grabs, grabs, memory_order_relaxed);
    atomic_store_explicit(&queue->takers, takers, memory_order_relaxed);
    atomic_store_explicit(&queue->kinds, kinds, memory_order_relaxed);
    atomic_store_explicit(&queue->word, pack(at), memory_order_release);
}

bool sp_queue_take(sp_queue *queue, sp_kind kind, sp_grab *grab) {
    uint64_t word = atomic_load_explicit(&queue->word, memory_order_acquire);
    for (;;) {
        position at = unpack(word);
        if (at.front == at.back || !(atomic_load_explicit(&queue->kinds, memory_order_relaxed) >> kind & 1))
            return false;
        uint64_t grabs = atomic_load_explicit(&queue->grabs, memory_order_relaxed);
        uint32_t takers = atomic_load_explicit(&queue->takers, memory_order_relaxed);
        uint32_t unit = atomic_load_explicit(&queue->unit, memory_order_relaxed);
        uint32_t tiles = atomic_load_explicit(&queue->tiles, memory_order_relaxed);
        grab->fn = atomic_load_explicit(&queue->fn, memory_order_relaxed);
        grab->ctx = atomic_load_explicit(&queue->ctx, memory_order_relaxed);
        uint32_t begin, end;
        advance(&at, kind, grabs, takers, &begin, &end);
        if (atomic_compare_exchange_weak_explicit(&queue->word, &word, pack(at), memory_order_acq_rel,
                                                  memory_order_acquire)) {
            set_range(grab, begin, end, unit, tiles);
            return true;
        }
    }
}

bool sp_queue_ready(sp_queue *queue, sp_kind kind) {
    position at = unpack(atomic_load_explicit(&queue->word, memory_order_relaxed));
    return at.front != at.back && atomic_load_explicit(&queue->kinds, memory_order_relaxed) >> kind & 1;
}
