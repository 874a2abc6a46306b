/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram of durations. Between 256 ns and 275 s, each doubling of the duration is divided
 * into four buckets, so the upper bound of a bucket is at most a quarter above each duration in
 * it. The first bucket has all shorter durations, and the last bucket all longer ones.
 *
 * One thread, the owner, records durations. Any thread may read the histogram. The counts are
 * relaxed atomics that only the owner writes, so recording a duration is a few plain loads and
 * stores. A concurrent reader can see the new duration in `counts` and not in `sum_ns`, or the
 * reverse. */
#ifndef RP_SERVER_METRICS_HISTOGRAM_H
#define RP_SERVER_METRICS_HISTOGRAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RP_HISTOGRAM_FIRST_BIT = 8, /* bucket 0: up to 2^8 ns */
    RP_HISTOGRAM_LAST_BIT = 38, /* the last bucket: above 2^38 ns */
    RP_HISTOGRAM_BUCKETS = 2 + 4 * (RP_HISTOGRAM_LAST_BIT - RP_HISTOGRAM_FIRST_BIT),
};

typedef struct rp_histogram {
    atomic_uint_fast64_t counts[RP_HISTOGRAM_BUCKETS];
    atomic_uint_fast64_t sum_ns;
} rp_histogram;

/* Returns the bucket of a duration. A negative duration counts as 0. */
static inline size_t rp_histogram_bucket(int64_t ns)
{
    uint64_t below = ns > 1 ? (uint64_t)ns - 1 : 0; /* a bucket includes its upper bound */
    int bit;

    if (below >> RP_HISTOGRAM_FIRST_BIT == 0) return 0;
    bit = 63 - __builtin_clzll(below);
    if (bit >= RP_HISTOGRAM_LAST_BIT) return RP_HISTOGRAM_BUCKETS - 1;
    return 1 + 4 * (size_t)(bit - RP_HISTOGRAM_FIRST_BIT) + (size_t)(below >> (bit - 2) & 3);
}

/* Returns the largest duration of a bucket; INT64_MAX for the last bucket. */
int64_t rp_histogram_bound_ns(size_t bucket);

/* Records `times` durations of `ns` each. Only the owner may call it. */
static inline void rp_histogram_record(rp_histogram *h, int64_t ns, uint64_t times)
{
    atomic_uint_fast64_t *count = &h->counts[rp_histogram_bucket(ns)];
    uint64_t sum = atomic_load_explicit(&h->sum_ns, memory_order_relaxed);
    uint64_t n = atomic_load_explicit(count, memory_order_relaxed);

    atomic_store_explicit(count, n + times, memory_order_relaxed);
    if (ns > 0)
        atomic_store_explicit(&h->sum_ns, sum + (uint64_t)ns * times, memory_order_relaxed);
}

/* The sum of histograms. Zero-initialise it. */
typedef struct rp_histogram_sum {
    uint64_t counts[RP_HISTOGRAM_BUCKETS];
    uint64_t count;
    uint64_t sum_ns;
} rp_histogram_sum;

/* Adds a histogram to the sum. Any thread may call it. */
void rp_histogram_add(rp_histogram_sum *sum, const rp_histogram *h);

/* Returns the number of durations up to 2^bit ns. `bit` must be between RP_HISTOGRAM_FIRST_BIT
 * and RP_HISTOGRAM_LAST_BIT. */
uint64_t rp_histogram_below(const rp_histogram_sum *sum, int bit);

/* Returns the quantile `q` (0 to 1) of the durations, rounded up by at most a quarter. A
 * quantile below 256 ns is returned as 256 ns, and one above 2^38 ns as 2^38 ns. Returns 0 if
 * there are no durations. */
int64_t rp_histogram_quantile_ns(const rp_histogram_sum *sum, double q);

#endif
