// SPDX-License-Identifier: Apache-2.0
// Where the system lets a thread run: one file per system, the same names.
//
// Everything here is a wish. A system may refuse it, or accept it and not apply it (Android), or have no such thing
// (macOS); the outcome is reported and never an error.
#pragma once

#include <stdint.h>

#include "cpu/topology.h"

typedef enum sp_pin {
    SP_PIN_NONE,     // not asked for, or more workers than cores
    SP_PIN_DONE,     // the mask, read back, is the one asked for
    SP_PIN_REFUSED,  // the system said no, or has no pinning
    SP_PIN_IGNORED,  // the system said yes and the mask, read back, is another
} sp_pin;

const char *sp_pin_name(sp_pin pin);

// Ties the calling thread to these logical CPUs.
sp_pin sp_thread_pin(const sp_cpuset *cpus);

// Tells the system what the calling thread is for: work that a person waits for (macOS: a quality-of-service class,
// without which it drifts to efficiency cores), and its name in debuggers.
void sp_thread_describe(const char *name);
