/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram of durations. From 256 ns to 275 s each doubling is divided into four buckets, so
 * the upper bound of such a bucket is at most a quarter above the durations in it. The first
 * bucket has all shorter durations, the last one all longer ones.
 *
 * One thread (the owner) records, any thread adds up. The numbers are relaxed atomics that only
 * the owner writes, so recording is a few plain loads and stores. A reader that runs during a
 * record may see some numbers with it and some without it. */
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

/* The bucket of a duration. A negative duration counts as 0. */
static inline size_t rp_histogram_bucket(int64_t ns)
{
    uint64_t below = ns > 1 ? (uint64_t)ns - 1 : 0; /* a bucket includes its upper bound */
    int bit;

    if (below >> RP_HISTOGRAM_FIRST_BIT == 0) return 0;
    bit = 63 - __builtin_clzll(below);
    if (bit >= RP_HISTOGRAM_LAST_BIT) return RP_HISTOGRAM_BUCKETS - 1;
    return 1 + 4 * (size_t)(bit - RP_HISTOGRAM_FIRST_BIT) + (size_t)(below >> (bit - 2) & 3);
}

/* The largest duration that falls into a bucket; INT64_MAX for the last. */
int64_t rp_histogram_bound_ns(size_t bucket);

/* Counts `times` durations of `ns` each. Only the owner may call it. */
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

/* Adds a histogram to the sum. Any thread. */
void rp_histogram_add(rp_histogram_sum *sum, const rp_histogram *h);

/* The number of durations up to 2^bit ns, for bits from FIRST_BIT to LAST_BIT. */
uint64_t rp_histogram_below(const rp_histogram_sum *sum, int bit);

/* The quantile `q` (0 to 1) of the durations; 0 if there are none. It is at most a quarter too
 * high. But if it is below 256 ns, 256 ns is returned; if it is above 2^38 ns, 2^38 ns. */
int64_t rp_histogram_quantile_ns(const rp_histogram_sum *sum, double q);

#endif
