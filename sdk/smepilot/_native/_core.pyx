# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The only crossing between Python and the C engine: one extension, assembled from the parts below."""

from smepilot import errors as _errors

include "errors.pxi"
include "gguf.pxi"
include "cpu.pxi"
include "pool.pxi"
