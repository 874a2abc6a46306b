/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of an episode become an item, and when. Pure functions of counts. */
#ifndef RP_ADDER_PLAN_H
#define RP_ADDER_PLAN_H

#include "reprise/rl/adder.h"

/* The rows of an item: `rows` complete rows that begin with row `first`, then `padding` rows
 * that are not of the episode. */
typedef struct rp_plan_rows {
    int64_t first, rows, padding;
} rp_plan_rows;

/* What the rules of sequences and episodes depend on; see rp_adder_options. */
typedef struct rp_plan {
    rp_adder_kind kind; /* RP_ADDER_SEQUENCE or RP_ADDER_EPISODE */
    int64_t length, period;
    rp_adder_end end;
    bool pad;
} rp_plan;

/* Regular rule: returns true, and the rows, if an item is due when `closed` rows are complete.
 */
bool rp_plan_regular(const rp_plan *plan, int64_t closed, rp_plan_rows *out);

/* End rule: the same when an episode ends. `closed` counts row T as well. */
bool rp_plan_last(const rp_plan *plan, int64_t closed, rp_plan_rows *out);

#endif
