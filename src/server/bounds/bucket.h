/* SPDX-License-Identifier: Apache-2.0 */
/* A token bucket: so many at once, so many a second for ever.
 *
 * A plain value that takes the time as an argument; zero is a full bucket. It keeps one number,
 * the time at which it will be full again: spending moves that time on by what one token takes
 * to come back, and is refused where that would lead more than a whole burst ahead. */
#ifndef RP_SERVER_BOUNDS_BUCKET_H
#define RP_SERVER_BOUNDS_BUCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How fast and how much: one for many buckets. */
typedef struct rp_bucket_rate {
    int64_t token_ns; /* in which one token comes back */
    int64_t burst_ns; /* in which all of them do */
} rp_bucket_rate;

typedef struct rp_bucket {
    int64_t full_at_ns;
} rp_bucket;

/* `burst` and `per_second` of 0 count as 1. */
static inline rp_bucket_rate rp_bucket_rate_of(size_t burst, size_t per_second)
{
    const int64_t longest_ns = INT64_MAX / 4;
    rp_bucket_rate rate = {1000000000 / (int64_t)(per_second > 0 ? per_second : 1), 0};

    if (per_second > 1000000000) rate.token_ns = 1;
    if (burst == 0) burst = 1;
    rate.burst_ns = burst > (size_t)(longest_ns / rate.token_ns)
                        ? longest_ns
                        : (int64_t)burst * rate.token_ns;
    return rate;
}

/* Takes one token. False, with nothing changed, if there is none. */
static inline bool rp_bucket_spend(rp_bucket *bucket, const rp_bucket_rate *rate,
                                   int64_t now_ns)
{
    int64_t full_at_ns = bucket->full_at_ns > now_ns ? bucket->full_at_ns : now_ns;

    if (full_at_ns - now_ns > rate->burst_ns - rate->token_ns) return false;
    bucket->full_at_ns = full_at_ns + rate->token_ns;
    return true;
}

/* Whether there is a token. Changes nothing. */
static inline bool rp_bucket_can_spend(const rp_bucket *bucket, const rp_bucket_rate *rate,
                                       int64_t now_ns)
{
    return bucket->full_at_ns - now_ns <= rate->burst_ns - rate->token_ns;
}

#endif
