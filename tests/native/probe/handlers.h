// SPDX-License-Identifier: Apache-2.0
// What a test may expect of signals.
#pragma once

#include <stdbool.h>

// Whether a signal handler can return here. On the emulated processors with SME and without SVE it cannot: QEMU 11
// writes a signal frame there that it cannot read back.
bool sp_handlers_return(void);
