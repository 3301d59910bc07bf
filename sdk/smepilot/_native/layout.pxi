# SPDX-License-Identifier: Apache-2.0
# Packed weight layouts and packing.

cdef extern from "layout/panel.h":
    ctypedef struct sp_panel_layout:
        size_t k
        size_t bytes
    sp_status sp_panel_layout_make(sp_panel_layout *out, int format, size_t k)
    void sp_panel_pack(const sp_panel_layout *layout, void *dst, const void **rows) nogil
    void sp_panel_row_f32(const sp_panel_layout *layout, float *dst, const void *panel, size_t r) nogil

cdef extern from "layout/smooth.h":
    void sp_column_peaks(const sp_panel_layout *layout, const void *panels, size_t count, float *peaks, float *row) nogil
    sp_status sp_row_scales(const sp_panel_layout *layout, const void *panels, size_t count, const float *s, float *inv,
                            float *scale, float *row) nogil

cdef extern from "format/format.h":
    ctypedef struct sp_format_info:
        const char *name
        size_t block
        size_t bytes
    const sp_format_info *sp_format_get(int format)

# Name to number of the weight formats.
_FORMATS = {}
cdef int _format = 0
while sp_format_get(_format) != NULL:
    _FORMATS[sp_format_get(_format).name.decode()] = _format
    _format += 1


cdef sp_panel_layout layout_of(str format, size_t k) except *:
    cdef sp_panel_layout layout
    if format not in _FORMATS:
        raise _errors.UnsupportedModelError(f"weight format {format} is not supported")
    check(sp_panel_layout_make(&layout, _FORMATS[format], k), f"rows of {k} {format} values")
    return layout


def packed_bytes(format: str, rows: int, k: int) -> int:
    """Bytes of the packed form of a weight matrix [rows][k]."""
    return layout_of(format, k).bytes * ((rows + 15) // 16)


def pack(format: str, k: int, const uint8_t[::1] source not None, const int64_t[::1] order not None,
         uint8_t[::1] out not None) -> None:
    """Packs rows of a file's matrix into panels.

    `source` holds whole rows of k values in the file's format; row i of the packed matrix is the file's row
    order[i]. `out` has packed_bytes(format, len(order), k) bytes and is 64-byte aligned. The GIL is released.
    """
    cdef sp_panel_layout layout = layout_of(format, k)
    cdef const sp_format_info *info = sp_format_get(_FORMATS[format])
    cdef size_t row_bytes = k // info.block * info.bytes
    cdef int64_t source_rows = source.shape[0] // row_bytes
    cdef Py_ssize_t rows = order.shape[0], i
    cdef size_t r, p
    cdef const void *panel_rows[16]
    if out.shape[0] != <Py_ssize_t>(layout.bytes * ((rows + 15) // 16)) or <size_t>&out[0] % 64:
        raise _errors.InvalidParameterError("pack: the destination has the wrong size or alignment")
    for i in range(rows):
        if not 0 <= order[i] < source_rows:
            raise _errors.InvalidParameterError(f"pack: row {order[i]} of a matrix of {source_rows}")
    with nogil:
        for p in range(<size_t>(rows + 15) // 16):
            for r in range(16):
                i = p * 16 + r
                panel_rows[r] = &source[order[i] * <int64_t>row_bytes] if i < rows else NULL
            sp_panel_pack(&layout, &out[p * layout.bytes], panel_rows)


def unpack_row(format: str, k: int, const uint8_t[::1] panels not None, row: int):
    """Row `row` of packed panels as float32 [k]."""
    import numpy

    cdef sp_panel_layout layout = layout_of(format, k)
    cdef size_t panel = row // 16
    if row < 0 or (panel + 1) * layout.bytes > <size_t>panels.shape[0]:
        raise _errors.InvalidParameterError(f"unpack_row: row {row} is outside the matrix")
    values = numpy.empty(k, dtype=numpy.float32)
    cdef float[::1] out = values
    sp_panel_row_f32(&layout, &out[0], &panels[panel * layout.bytes], row % 16)
    return values


cdef size_t panels_in(const sp_panel_layout *layout, const uint8_t[::1] panels, str what) except? 0:
    if panels.shape[0] == 0 or panels.shape[0] % layout.bytes:
        raise _errors.InvalidParameterError(f"{what}: {panels.shape[0]} bytes are no whole panels")
    return panels.shape[0] // layout.bytes


def column_peaks(format: str, const uint8_t[::1] panels not None, float[::1] peaks not None) -> None:
    """Raises peaks, float32 [k], to the largest size of each column over packed panels. The GIL is released."""
    import numpy

    cdef sp_panel_layout layout = layout_of(format, peaks.shape[0])
    cdef size_t count = panels_in(&layout, panels, "column_peaks")
    cdef float[::1] row = numpy.empty(layout.k, dtype=numpy.float32)
    with nogil:
        sp_column_peaks(&layout, &panels[0], count, &peaks[0], &row[0])


def row_scales(format: str, const uint8_t[::1] panels not None, const float[::1] s not None, float[::1] inv not None,
               float[::1] scale not None) -> None:
    """Writes inv = 127 / amax and scale = amax / 127 of every row of packed panels, amax being its largest |w * s|.

    s: float32 [k]. inv, scale: float32 [16 for each panel]. The GIL is released.
    Raises NumericError where the matrix has no rowwise form.
    """
    import numpy

    cdef sp_panel_layout layout = layout_of(format, s.shape[0])
    cdef size_t count = panels_in(&layout, panels, "row_scales")
    cdef float[::1] row = numpy.empty(layout.k, dtype=numpy.float32)
    cdef sp_status status
    if <size_t>inv.shape[0] != 16 * count or <size_t>scale.shape[0] != 16 * count:
        raise _errors.InvalidParameterError("row_scales: inv and scale need one element for each row")
    with nogil:
        status = sp_row_scales(&layout, &panels[0], count, &s[0], &inv[0], &scale[0], &row[0])
    check(status, "scales of rows")
