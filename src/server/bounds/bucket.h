/* SPDX-License-Identifier: Apache-2.0 */
/* A token bucket: allows a burst of events, and a number of events per second in the long run.
 *
 * The functions read no clock: the caller passes the current time. A zeroed bucket is full. The
 * bucket stores the time at which it will be full again. Spending a token adds token_ns to that
 * time. If the time would then be more than burst_ns ahead, the bucket has no token. */
#ifndef RP_SERVER_BOUNDS_BUCKET_H
#define RP_SERVER_BOUNDS_BUCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The rate and size of a bucket. Many buckets may share one rp_bucket_rate. */
typedef struct rp_bucket_rate {
    int64_t token_ns; /* time in which one token comes back */
    int64_t burst_ns; /* time in which an empty bucket becomes full */
} rp_bucket_rate;

typedef struct rp_bucket {
    int64_t full_at_ns;
} rp_bucket;

/* Returns the rate of a bucket of `burst` tokens that regains `per_second` tokens per second. A
 * 0 counts as 1. */
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

/* Takes one token and returns true. If there is none, changes nothing and returns false. */
static inline bool rp_bucket_spend(rp_bucket *bucket, const rp_bucket_rate *rate,
                                   int64_t now_ns)
{
    int64_t full_at_ns = bucket->full_at_ns > now_ns ? bucket->full_at_ns : now_ns;

    if (full_at_ns - now_ns > rate->burst_ns - rate->token_ns) return false;
    bucket->full_at_ns = full_at_ns + rate->token_ns;
    return true;
}

/* Returns whether there is a token. Changes nothing. */
static inline bool rp_bucket_can_spend(const rp_bucket *bucket, const rp_bucket_rate *rate,
                                       int64_t now_ns)
{
    return bucket->full_at_ns - now_ns <= rate->burst_ns - rate->token_ns;
}

#endif
