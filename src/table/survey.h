/* SPDX-License-Identifier: Apache-2.0 */
/* A survey of a table: randomly chosen items and the newest items, without their data. The
 * server's web pages show it. In contrast to a sample, a survey changes nothing and does not
 * wait for the rate limiter. */
#ifndef RP_TABLE_SURVEY_H
#define RP_TABLE_SURVEY_H

#include "reprise/table.h"

enum { RP_SURVEY_ITEMS = 1024, RP_SURVEY_RECENT = 16 };

typedef struct rp_surveyed {
    uint64_t key;
    double priority;
    double probability; /* the probability that one draw of the sampler picks the item; NaN if
                           the sampler does not draw at random */
    int64_t inserted_at_ns; /* wall clock */
    uint64_t sequence;      /* increases with each insert */
    int64_t length;         /* in `recent`: number of rows of the item's longest column. In
                               `items`: always 0 */
    int32_t times_sampled;
} rp_surveyed;

typedef struct rp_survey {
    int64_t wall_ns; /* time of the survey */
    int64_t table_size;
    size_t count; /* number of entries in `items`. A table that has never had more than 4 *
                     RP_SURVEY_ITEMS items at a time is read in full: `count` is the smaller of
                     its size and RP_SURVEY_ITEMS. Of a larger table, the survey reads random
                     slots (slots.h) until it has RP_SURVEY_ITEMS items, but at most 4 *
                     RP_SURVEY_ITEMS slots. So if most slots are free, `count` is smaller,
                     possibly 0 */
    size_t recent_count;
    rp_surveyed items[RP_SURVEY_ITEMS]; /* randomly chosen, each item equally likely; if random
                                           slots are read, an item may occur twice */
    rp_surveyed recent[RP_SURVEY_RECENT]; /* newest first */
} rp_survey;

/* Makes a survey. Acquires the table's lock for 64 slots at a time, so that other threads wait
 * for a few microseconds at most. The table possibly changes during the survey. `recent` has
 * the newest items that this process has inserted. If there are fewer than RP_SURVEY_RECENT of
 * them, for example after a load from disk, the newest items of `items` fill the rest of
 * `recent`. Any thread may call this. */
void rp_table_survey(rp_table *table, uint64_t seed, rp_survey *out);

/* Returns the median age of a table's items by the wall clock, in nanoseconds. If the table has
 * more than 64 slots, uses the items in 64 random slots. Returns -1 if it finds no item.
 * Acquires the table's lock once, for a short time. Any thread may call this. */
int64_t rp_table_median_age_ns(rp_table *table, uint64_t seed);

#endif
