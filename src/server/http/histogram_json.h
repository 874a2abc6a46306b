/* SPDX-License-Identifier: Apache-2.0 */
/* Makes histograms of a few values, which the pages of the HTTP server show (page.h). The
 * results depend only on the arguments. */
#ifndef RP_SERVER_HTTP_HISTOGRAM_JSON_H
#define RP_SERVER_HTTP_HISTOGRAM_JSON_H

#include "util/buf.h"

enum { RP_HISTOGRAM_BINS = 20 };

typedef struct rp_bins {
    size_t count; /* number of bins; 0: there are no values */
    double bounds[RP_HISTOGRAM_BINS +
                  1]; /* ascending. Bin i counts the values v with bounds[i] <= v < bounds[i +
                         1]; the last bin also counts its upper bound */
    uint64_t counts[RP_HISTOGRAM_BINS];
} rp_bins;

/* Sorts the finite values among `count` values into bins, and counts them. If all of them are
 * equal, there is one bin. If `is_whole` and they lie in a range of at most RP_HISTOGRAM_BINS
 * whole numbers, each whole number of the range gets a bin. In all other cases there are
 * RP_HISTOGRAM_BINS bins. The bins are equally wide on a logarithmic scale if all values are
 * positive and the largest is more than 100 times the smallest. Otherwise they are equally wide
 * on a linear scale. */
void rp_bins_make(rp_bins *bins, const double *values, size_t count, bool is_whole);

/* Appends "name":{"bounds":[...],"counts":[...]}. */
void rp_out_bins(rp_buf *out, const char *name, const rp_bins *bins);

#endif
