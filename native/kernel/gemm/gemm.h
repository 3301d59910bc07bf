// SPDX-License-Identifier: Apache-2.0
// What the matrix-product kernels share across instruction sets.
#pragma once

#include "kernel/declare.h"
#include "kernel/template.h"
#include "layout/panel.h"

// The quantised weight kinds as constants for templates.
typedef enum sp_weight_kind { SP_WEIGHT_Q4S, SP_WEIGHT_Q4A, SP_WEIGHT_Q8S } sp_weight_kind;

// The parts of group g of a weight panel (layout/panel.h says how blocks of two groups are laid out).
typedef struct sp_weight_group {
    const uint16_t *scales, *minima;
    const uint8_t *data;
} sp_weight_group;

SP_TEMPLATE sp_weight_group sp_weight_group_at(sp_weight_kind kind, const uint8_t *panel, size_t g) SP_ANY_MODE {
    const size_t block = kind == SP_WEIGHT_Q4S ? SP_BLOCK_Q4S : kind == SP_WEIGHT_Q4A ? SP_BLOCK_Q4A : SP_BLOCK_Q8S;
    const size_t head = kind == SP_WEIGHT_Q4A ? 2 * SP_BLOCK_SCALES : SP_BLOCK_SCALES;
    const uint8_t *at = panel + g / 2 * block;
    const uint16_t *scales = (const uint16_t *)(const void *)(at + g % 2 * 32);
    return (sp_weight_group){.scales = scales,
                             .minima = scales + SP_BLOCK_SCALES / sizeof(uint16_t),
                             .data = at + head + g % 2 * (kind == SP_WEIGHT_Q8S ? 512 : 256)};
}
