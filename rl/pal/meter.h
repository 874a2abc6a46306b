/* SPDX-License-Identifier: Apache-2.0 */
/* A meter: the rate of a count that grows, as the median of some slices of time.
 *
 * A plain value without a clock. The owner passes the count and the time to the meter now and
 * then. The warm-up begins when the count begins to grow, and the slices follow it. Since the
 * rate is a median, up to two slices in which another process had the core do not change it
 * much. */
#ifndef RP_PAL_METER_H
#define RP_PAL_METER_H

#include <stdbool.h>
#include <stdint.h>

enum { RP_METER_SLICES = 5 };

typedef struct rp_meter {
    int64_t warm_ns, slice_ns; /* set by the owner, > 0 */
    int64_t least;             /* set by the owner, > 0: the least growth of the count in a
                                  slice. A slice ends after slice_ns, or later if the count
                                  has grown less than that */
    bool has_begun, is_warm;
    int64_t since_ns, since_count; /* of the warm-up or of the slice */
    int slices;                    /* complete */
    double rates[RP_METER_SLICES];
} rp_meter;

/* Takes a look: `count` at the time `now_ns`, neither of which ever falls. Returns true once
 * all slices are complete; later looks change nothing. */
bool rp_meter_look(rp_meter *meter, int64_t now_ns, int64_t count);

/* The median of the slices in counts a second, once they are complete. */
double rp_meter_rate(const rp_meter *meter);

#endif
