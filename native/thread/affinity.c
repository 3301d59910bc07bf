// SPDX-License-Identifier: Apache-2.0
#include "thread/affinity.h"

const char *sp_pin_name(sp_pin pin) {
    static const char *const names[] = {
        [SP_PIN_NONE] = "none", [SP_PIN_DONE] = "done", [SP_PIN_REFUSED] = "refused", [SP_PIN_IGNORED] = "ignored"};
    return names[pin];
}
