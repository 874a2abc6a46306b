/* SPDX-License-Identifier: Apache-2.0 */
/* A meter: measures how fast a count grows, for example the steps of a run.
 *
 * The owner passes the count and the time to the meter from time to time; the meter has no
 * clock. Once the count begins to grow, a warm-up passes. Then the meter measures
 * RP_METER_SLICES slices of time. The result is the median of their rates: it hardly changes if
 * another process takes the core in one or two of the slices. */
#ifndef RP_PAL_METER_H
#define RP_PAL_METER_H

#include <stdbool.h>
#include <stdint.h>

enum { RP_METER_SLICES = 5 };

typedef struct rp_meter {
    /* Set by the owner, each > 0. A slice ends once it has lasted slice_ns and the count has
     * grown by `least` in it. */
    int64_t warm_ns, slice_ns; /* lengths of the warm-up and of a slice */
    int64_t least;             /* the least growth of the count in a slice */

    bool has_begun, is_warm;       /* the first call was made; the warm-up is over */
    int64_t since_ns, since_count; /* time and count when the warm-up or the slice began */
    int slices;                    /* complete slices */
    double rates[RP_METER_SLICES]; /* of the complete slices, in counts per second */
} rp_meter;

/* Records that the count is `count` at the time `now_ns`. The caller must never pass an earlier
 * time or a smaller count than before. Returns true once all slices are complete; further calls
 * then change nothing. */
bool rp_meter_look(rp_meter *meter, int64_t now_ns, int64_t count);

/* The median rate in counts per second. The caller must wait until all slices are complete. */
double rp_meter_rate(const rp_meter *meter);

#endif
