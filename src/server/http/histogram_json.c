/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/histogram_json.h"

#include <math.h>

#include "server/http/json_out.h"
#include "server/http/text.h"

static const double wide = 100; /* from this ratio on, the scale is logarithmic */

/* Finds the smallest and the largest finite value. False if there is none. */
static bool range_of(const double *values, size_t count, double *least, double *most)
{
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) continue;
        if (!any || values[i] < *least) *least = values[i];
        if (!any || values[i] > *most) *most = values[i];
        any = true;
    }
    return any;
}

static void set_bounds(rp_bins *bins, double least, double most, bool is_whole)
{
    bool is_log = least > 0 && most / least > wide;

    bins->count = RP_HISTOGRAM_BINS;
    if (least == most) {
        bins->count = 1;
    } else if (is_whole && most - least < RP_HISTOGRAM_BINS) {
        bins->count = (size_t)(most - least) + 1;
        for (size_t i = 0; i <= bins->count; i++) bins->bounds[i] = least + (double)i;
        return;
    }
    for (size_t i = 0; i <= bins->count; i++) {
        double part = (double)i / (double)bins->count;

        /* Halves first: the difference of two finite numbers may not be finite. */
        bins->bounds[i] = is_log ? exp(log(least) + part * (log(most) - log(least)))
                                 : 2 * (least / 2 + part * (most / 2 - least / 2));
    }
    bins->bounds[0] = least;
    bins->bounds[bins->count] = most;
}

void rp_bins_make(rp_bins *bins, const double *values, size_t count, bool is_whole)
{
    double least = 0, most = 0;

    *bins = (rp_bins){.count = 0};
    if (!range_of(values, count, &least, &most)) return;
    set_bounds(bins, least, most, is_whole);
    for (size_t i = 0; i < count; i++) {
        size_t bin = bins->count - 1;

        if (!isfinite(values[i])) continue;
        while (bin > 0 && values[i] < bins->bounds[bin]) bin--;
        bins->counts[bin]++;
    }
}

void rp_out_bins(rp_buf *out, const char *name, const rp_bins *bins)
{
    rp_out_open(out, name);
    rp_out_key(out, "bounds");
    for (size_t i = 0; bins->count > 0 && i <= bins->count; i++) {
        rp_buf_text(out, i > 0 ? "," : "[");
        rp_out_double(out, bins->bounds[i]);
    }
    rp_buf_text(out, bins->count > 0 ? "]" : "[]");
    rp_out_key(out, "counts");
    for (size_t i = 0; i < bins->count; i++) {
        rp_buf_text(out, i > 0 ? "," : "[");
        rp_put_whole(out, bins->counts[i]);
    }
    rp_buf_text(out, bins->count > 0 ? "]" : "[]");
    rp_out_close(out);
}
