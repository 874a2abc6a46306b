/* SPDX-License-Identifier: Apache-2.0 */
/* A meter: measures how fast a count grows. Profiles (reprise/rl/profile.h) measure the steps
 * and updates per second with meters.
 *
 * The owner passes the count and the time to the meter from time to time; the meter has no
 * clock. When the count begins to grow, a warm-up begins. After the warm-up, the meter measures
 * the rate in RP_METER_SLICES slices of time. The result is the median of these rates, which
 * hardly changes if another process uses the core in one or two of the slices. */
#ifndef RP_PAL_METER_H
#define RP_PAL_METER_H

#include <stdbool.h>
#include <stdint.h>

enum { RP_METER_SLICES = 5 };

typedef struct rp_meter {
    /* Set by the owner, each > 0. A slice ends when it has lasted at least slice_ns and the
     * count has grown by at least `least`. */
    int64_t warm_ns, slice_ns; /* lengths of the warm-up and of a slice */
    int64_t least;             /* the least growth of the count in a slice */

    bool has_begun, is_warm;       /* has_begun: rp_meter_look() has been called; is_warm: the
                                      warm-up is over */
    int64_t since_ns, since_count; /* time and count when the warm-up or the slice began */
    int slices;                    /* number of complete slices */
    double rates[RP_METER_SLICES]; /* rates of the complete slices, in counts per second */
} rp_meter;

/* Records that the count is `count` at the time `now_ns`. The caller must never pass an earlier
 * time or a smaller count than before. Returns true if all slices are complete; further calls
 * change nothing. */
bool rp_meter_look(rp_meter *meter, int64_t now_ns, int64_t count);

/* Returns the median rate in counts per second. The caller must call this function only after
 * all slices are complete. */
double rp_meter_rate(const rp_meter *meter);

#endif
