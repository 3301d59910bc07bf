# SPDX-License-Identifier: Apache-2.0
# The one loop over a model file that is too long for Python: vocabularies hold hundreds of thousands of strings,
# and the end of an array is only known by walking the length prefixes of all its elements.

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy


def index_strings(const uint8_t[::1] data not None, uint64_t offset, uint64_t count):
    """Positions of `count` strings, each a little-endian uint64 length and its bytes, that start at `offset`.

    Returns a uint64 array of `count + 1` positions: of each length prefix, then of the first byte behind the last
    string. Raises ValueError when a string runs past the end of `data`; nothing is read beyond it.
    """
    import numpy

    cdef uint64_t size = data.shape[0]
    cdef uint64_t at = offset
    cdef uint64_t length, i
    if offset > size or count > (size - offset) // 8:
        raise ValueError(f"{count} strings do not fit into the {max(size, offset) - offset} bytes that are left")
    positions = numpy.empty(count + 1, dtype=numpy.uint64)
    cdef uint64_t[::1] out = positions
    for i in range(count):
        if size - at < 8:
            raise ValueError(f"string {i} of {count} starts past the end")
        memcpy(&length, &data[at], 8)
        if length > size - at - 8:
            raise ValueError(f"string {i} of {count} is {length} bytes long, more than are left")
        out[i] = at
        at += 8 + length
    out[count] = at
    return positions
