// SPDX-License-Identifier: Apache-2.0
// The one status enum of the C engine. C code returns it, never prints, never exits;
// sdk/smepilot/_native maps it to exceptions in one table.
#pragma once

typedef enum sp_status {
    SP_OK = 0,
    SP_ERR_MEMORY,       // memory could not be had
    SP_ERR_ARGUMENT,     // a caller broke a documented precondition
    SP_ERR_CANCELLED,    // the run was cancelled between two tiles
    SP_ERR_NUMERIC,      // NaN where a number is required
    SP_ERR_SYSTEM,       // the operating system refused a call
    SP_ERR_UNSUPPORTED,  // not built, or not available on this machine
    SP_STATUS_COUNT
} sp_status;

// One line of text for a status; never NULL.
const char *sp_status_text(sp_status status);
