/* SPDX-License-Identifier: Apache-2.0 */
#include "server/metrics/histogram.h"

#include <assert.h>

int64_t rp_histogram_bound_ns(size_t bucket)
{
    int bit = RP_HISTOGRAM_FIRST_BIT + (int)((bucket - 1) / 4);

    if (bucket == 0) return (int64_t)1 << RP_HISTOGRAM_FIRST_BIT;
    if (bucket >= RP_HISTOGRAM_BUCKETS - 1) return INT64_MAX;
    return ((int64_t)1 << bit) + (int64_t)((bucket - 1) % 4 + 1) * ((int64_t)1 << (bit - 2));
}

void rp_histogram_add(rp_histogram_sum *sum, const rp_histogram *h)
{
    for (size_t i = 0; i < RP_HISTOGRAM_BUCKETS; i++) {
        uint64_t n = atomic_load_explicit(&h->counts[i], memory_order_relaxed);

        sum->counts[i] += n;
        sum->count += n;
    }
    sum->sum_ns += atomic_load_explicit(&h->sum_ns, memory_order_relaxed);
}

uint64_t rp_histogram_below(const rp_histogram_sum *sum, int bit)
{
    size_t last = 4 * (size_t)(bit - RP_HISTOGRAM_FIRST_BIT);
    uint64_t below = 0;

    assert(bit >= RP_HISTOGRAM_FIRST_BIT && bit <= RP_HISTOGRAM_LAST_BIT);
    for (size_t i = 0; i <= last; i++) below += sum->counts[i];
    return below;
}

int64_t rp_histogram_quantile_ns(const rp_histogram_sum *sum, double q)
{
    double wanted = q * (double)sum->count;
    uint64_t below = 0;

    assert(q >= 0 && q <= 1);
    if (sum->count == 0) return 0;
    for (size_t i = 0; i < RP_HISTOGRAM_BUCKETS - 1; i++) {
        below += sum->counts[i];
        if (below > 0 && (double)below >= wanted) return rp_histogram_bound_ns(i);
    }
    return (int64_t)1 << RP_HISTOGRAM_LAST_BIT; /* at least that */
}
