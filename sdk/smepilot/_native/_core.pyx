# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The only crossing between Python and the C engine: one extension, assembled from the parts below."""

from array import array as _array
from collections.abc import Sequence as _Sequence

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from smepilot import errors as _errors

include "errors.pxi"
include "gguf.pxi"
include "cpu.pxi"
include "pool.pxi"
include "registry.pxi"
include "layout.pxi"
include "kv.pxi"
include "operators.pxi"
include "program.pxi"
include "probe.pxi"
include "sample.pxi"
