// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 (Salmon et al., 2011): random numbers as a pure function of key and counter, so that draw n of a seed
// is the same on every machine, whatever was drawn before and by whom.
#pragma once

#include <stdint.h>

// Encrypts `counter` in place under `key`.
static inline void sp_philox(uint32_t counter[4], uint64_t key) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xd2511f53u * counter[0];
        const uint64_t b = (uint64_t)0xcd9e8d57u * counter[2];
        const uint32_t c1 = counter[1], c3 = counter[3];
        counter[0] = (uint32_t)(b >> 32) ^ c1 ^ k0;
        counter[1] = (uint32_t)b;
        counter[2] = (uint32_t)(a >> 32) ^ c3 ^ k1;
        counter[3] = (uint32_t)a;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
}

// Number `draw` of the sequence `seed`: uniform in [0, 1), 53 bits.
static inline double sp_philox_uniform(uint64_t seed, uint64_t draw) {
    uint32_t word[4] = {(uint32_t)draw, (uint32_t)(draw >> 32), 0, 0};
    sp_philox(word, seed);
    const uint64_t bits = (uint64_t)word[1] << 32 | word[0];
    return (double)(bits >> 11) * 0x1p-53;
}
