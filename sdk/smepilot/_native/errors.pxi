# SPDX-License-Identifier: Apache-2.0
# The one table between C statuses and Python exceptions.

cdef extern from "base/status.h":
    ctypedef enum sp_status:
        SP_OK
        SP_ERR_MEMORY
        SP_ERR_ARGUMENT
        SP_ERR_CANCELLED
        SP_ERR_NUMERIC
        SP_ERR_SYSTEM
        SP_ERR_UNSUPPORTED
    const char *sp_status_text(sp_status status)

_EXCEPTIONS = {
    SP_ERR_MEMORY: _errors.OutOfMemoryError,
    SP_ERR_ARGUMENT: _errors.InvalidParameterError,
    SP_ERR_CANCELLED: _errors.CancelledError,
    SP_ERR_NUMERIC: _errors.NumericError,
    SP_ERR_SYSTEM: _errors.NativeError,
    SP_ERR_UNSUPPORTED: _errors.NativeError,
}


cdef int check(sp_status status, str what) except -1:
    """Raises the exception that belongs to `status`; `what` names the thing that was being done."""
    if status != SP_OK:
        raise _EXCEPTIONS[status](f"{what}: {sp_status_text(status).decode()}")
    return 0
