// SPDX-License-Identifier: Apache-2.0
// What the rowwise class must know of a quantised weight matrix: the size of its columns, from which a smoothing scale
// s[j] for each column is chosen, and then the size of its rows with their columns multiplied by s.
//
// Sizes are compared as bit patterns, where NaN is above infinity and infinity above the rest: a maximum depends on no
// order, so panels may be visited by any number of threads, and what is not finite stays visible in the result.
#pragma once

#include "layout/panel.h"

// Raises peaks[0..k) to the largest |w| of each column over `count` panels. `row` is room for k values.
void sp_column_peaks(const sp_panel_layout *layout, const void *panels, size_t count, float *peaks, float *row);

// For each row of `count` panels, with amax the largest |w * s| of the row: inv = 127 / amax and scale = amax / 127,
// both 0 where amax is below 2^-110, as in a row of zeros. `s` has k values, `row` is room for as many. SP_ERR_NUMERIC
// if something is not finite, or would not be in the expansion to int8 (kernel/families.h), or if its rounding might
// lead out of -127..127: then the matrix has no rowwise form. No file that a quantiser wrote is so.
sp_status sp_row_scales(const sp_panel_layout *layout, const void *panels, size_t count, const float *s, float *inv,
                        float *scale, float *row);
