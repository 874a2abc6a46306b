/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which rows of an episode become an item, and when, for the adders of sequences and of
 * whole episodes (reprise/rl/adder.h). Row t of an episode holds observation t and action t;
 * the last row, row T, has an observation only. A row is complete once the next observation is
 * known. The functions depend only on their arguments. */
#ifndef RP_ADDER_PLAN_H
#define RP_ADDER_PLAN_H

#include "reprise/rl/adder.h"

/* The rows of an item: `rows` complete rows from row `first` on, then `padding` rows, which are
 * not part of the episode. */
typedef struct rp_plan_rows {
    int64_t first, rows, padding;
} rp_plan_rows;

/* The options of the adder on which the decision depends; see rp_adder_options. */
typedef struct rp_plan {
    rp_adder_kind kind; /* RP_ADDER_SEQUENCE or RP_ADDER_EPISODE */
    int64_t length, period;
    rp_adder_end end;
    bool pad;
} rp_plan;

/* Decides within an episode: if an item must be made when exactly `closed` rows are complete,
 * writes the rows of the item to `*out` and returns true. */
bool rp_plan_regular(const rp_plan *plan, int64_t closed, rp_plan_rows *out);

/* Decides at the end of an episode: if an item must be made at this end, writes the rows of the
 * item to `*out` and returns true. `closed` is the number of complete rows, including row T. */
bool rp_plan_last(const rp_plan *plan, int64_t closed, rp_plan_rows *out);

#endif
