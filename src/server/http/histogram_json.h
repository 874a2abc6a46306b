/* SPDX-License-Identifier: Apache-2.0 */
/* Makes histograms of a few values, for a page. Pure functions. */
#ifndef RP_SERVER_HTTP_HISTOGRAM_JSON_H
#define RP_SERVER_HTTP_HISTOGRAM_JSON_H

#include "util/buf.h"

enum { RP_HISTOGRAM_BINS = 20 };

typedef struct rp_bins {
    size_t count; /* number of bins; 0: there are no values */
    double bounds[RP_HISTOGRAM_BINS +
                  1]; /* ascending. Bin i has the values from bounds[i] to below bounds[i + 1];
                         the last bin includes its upper bound */
    uint64_t counts[RP_HISTOGRAM_BINS];
} rp_bins;

/* Counts the finite ones among `count` values. If all values are positive and the largest is
 * more than 100 times the smallest, the bins are equally wide on a logarithmic scale. Otherwise
 * they are equally wide. If `is_whole` and the values lie in a range of at most
 * RP_HISTOGRAM_BINS whole numbers, each whole number gets a bin. */
void rp_bins_make(rp_bins *bins, const double *values, size_t count, bool is_whole);

/* Appends "name":{"bounds":[...],"counts":[...]}. */
void rp_out_bins(rp_buf *out, const char *name, const rp_bins *bins);

#endif
