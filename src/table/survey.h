/* SPDX-License-Identifier: Apache-2.0 */
/* A survey of a table: a random sample of its items and its newest items, without their data,
 * for people who look at the table. Unlike a sample it changes nothing and does not wait for
 * the rate limiter. */
#ifndef RP_TABLE_SURVEY_H
#define RP_TABLE_SURVEY_H

#include "reprise/table.h"

enum { RP_SURVEY_ITEMS = 1024, RP_SURVEY_RECENT = 16 };

typedef struct rp_surveyed {
    uint64_t key;
    double priority;
    double probability;     /* of a draw; NaN if the sampler does not draw at random */
    int64_t inserted_at_ns; /* wall clock */
    uint64_t sequence;      /* increases with each insert */
    int64_t length;         /* rows of its longest column; 0 for items that are not recent */
    int32_t times_sampled;
} rp_surveyed;

typedef struct rp_survey {
    int64_t wall_ns; /* when the survey was made */
    int64_t table_size;
    size_t count; /* all items of a small table; else RP_SURVEY_ITEMS, or a few less */
    size_t recent_count;
    rp_surveyed items[RP_SURVEY_ITEMS];   /* each equally likely; a large table's may repeat */
    rp_surveyed recent[RP_SURVEY_RECENT]; /* newest first */
} rp_survey;

/* Makes a survey. The lock is acquired for 64 slots at a time, so that others wait for a few
 * microseconds at most; the table may change in between. The recent items are the newest ones
 * since the table was made in this process; a table that was loaded from disk shows the newest
 * of the sampled ones until then. Any thread. */
void rp_table_survey(rp_table *table, uint64_t seed, rp_survey *out);

/* The median age of the items, in nanoseconds of the wall clock: of all items of a table with
 * up to 64 slots, else of those in 64 random slots. -1 if none of these has an item. One short
 * acquisition of the lock. Any thread. */
int64_t rp_table_median_age_ns(rp_table *table, uint64_t seed);

#endif
