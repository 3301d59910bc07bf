// SPDX-License-Identifier: Apache-2.0
// The instructions that multiply int8 and add up, each in the order in which it is written.
//
// `volatile` is what keeps that order. clang's scheduler else lifts the loads of a whole group of weights to its start,
// runs out of registers, and keeps weights on the stack; gcc moves accumulators about. Each kernel's order is made for
// the registers it has.
#pragma once

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#include "kernel/template.h"

// Nothing that comes after in the order of volatile statements begins before v is there.
#define SP_SETTLE(v) __asm__ volatile("" : "+w"(v))

// Lets a pointer step on by an instruction that stores, where clang would add up all steps from the first.
#define SP_STEP(p) __asm__("" : "+r"(p))

// Four times a quad. Were it known to be that, clang would multiply its low half by halves taken out of the weights.
SP_TEMPLATE int8x16_t sp_quad_bcast_neon(const int8_t *a) {
    int32_t quad;
    memcpy(&quad, a, sizeof quad);
    int8x16_t v = vreinterpretq_s8_s32(vdupq_n_s32(quad));
    SP_SETTLE(v);
    return v;
}

#ifdef __ARM_FEATURE_DOTPROD
// acc + four dot products of a quad: of w with lane `lane` of a.
#define SP_SDOT(lane) __asm__ volatile("sdot %0.4s, %1.16b, %2.4b[" #lane "]" : "+w"(acc) : "w"(w), "w"(a))
SP_TEMPLATE int32x4_t sp_sdot_lane(int32x4_t acc, int8x16_t w, int8x16_t a, const int lane) {
    switch (lane) {
        case 0: SP_SDOT(0); break;
        case 1: SP_SDOT(1); break;
        case 2: SP_SDOT(2); break;
        default: SP_SDOT(3); break;
    }
    return acc;
}
#endif

#ifdef __ARM_FEATURE_MATMUL_INT8
// acc + dot products of two tokens by two rows, eight k each.
SP_TEMPLATE int32x4_t sp_smmla(int32x4_t acc, int32x4_t a, int32x4_t w) {
    __asm__ volatile("smmla %0.4s, %1.16b, %2.16b" : "+w"(acc) : "w"(a), "w"(w));
    return acc;
}
#endif
