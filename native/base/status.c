// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

static const char *const texts[SP_STATUS_COUNT] = {
    [SP_OK] = "ok",
    [SP_ERR_MEMORY] = "out of memory",
    [SP_ERR_ARGUMENT] = "invalid argument",
    [SP_ERR_CANCELLED] = "cancelled",
    [SP_ERR_NUMERIC] = "not a number",
    [SP_ERR_SYSTEM] = "the operating system refused the call",
    [SP_ERR_UNSUPPORTED] = "not supported by this build or machine",
};

const char *sp_status_text(sp_status status) { return status < SP_STATUS_COUNT ? texts[status] : "unknown status"; }
