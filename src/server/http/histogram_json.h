/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms of a few values, for a page. Pure functions. */
#ifndef RP_SERVER_HTTP_HISTOGRAM_JSON_H
#define RP_SERVER_HTTP_HISTOGRAM_JSON_H

#include "util/buf.h"

enum { RP_HISTOGRAM_BINS = 20 };

typedef struct rp_bins {
    size_t count;                         /* of bins; 0: there are no values */
    double bounds[RP_HISTOGRAM_BINS + 1]; /* ascending: a bin has the values from its bound, to
                                             below the next; the last has its upper bound too */
    uint64_t counts[RP_HISTOGRAM_BINS];
} rp_bins;

/* Counts `count` values; those that are not finite are left out. The bins are equally wide, or
 * equally wide on a logarithmic scale if all values are positive and the largest is more than
 * 100 times the smallest. Whole numbers of which there are at most RP_HISTOGRAM_BINS get a bin
 * each if `is_whole`. */
void rp_bins_make(rp_bins *bins, const double *values, size_t count, bool is_whole);

/* Appends "name":{"bounds":[...],"counts":[...]}. */
void rp_out_bins(rp_buf *out, const char *name, const rp_bins *bins);

#endif
