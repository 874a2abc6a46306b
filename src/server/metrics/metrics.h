/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of the server.
 *
 * Each event loop has its own set of counters, which only the loop's thread writes. So counting
 * is a load and a store, without contention. Readers add the sets up. Threads that have no loop
 * share one set, and count with an atomic addition. All atomics are relaxed, since no other
 * memory depends on a count. Counters are never reset.
 *
 * Invariants:
 *   M1  the array of the tables' metrics is sorted by name and has each name once;
 *   M2  each loop has one shard (set of counters). The last shard is for the other threads. */
#ifndef RP_SERVER_METRICS_METRICS_H
#define RP_SERVER_METRICS_METRICS_H

#include "server/auth/method.h"
#include "server/bounds/abuse.h"
#include "server/bounds/refusal.h"
#include "server/metrics/histogram.h"

typedef struct rp_counter {
    atomic_uint_fast64_t n;
} rp_counter;

/* Only the thread that owns the counter may call the next three functions. rp_counter_sub() is
 * for gauges, counters that can decrease. rp_counter_raise() is for a gauge that holds a
 * maximum: it sets the counter to `n` if `n` is higher. */
static inline void rp_counter_add(rp_counter *counter, uint64_t n)
{
    uint64_t now = atomic_load_explicit(&counter->n, memory_order_relaxed);
    atomic_store_explicit(&counter->n, now + n, memory_order_relaxed);
}
static inline void rp_counter_sub(rp_counter *counter, uint64_t n)
{
    rp_counter_add(counter, 0 - n);
}
static inline void rp_counter_raise(rp_counter *counter, uint64_t n)
{
    if (atomic_load_explicit(&counter->n, memory_order_relaxed) < n)
        atomic_store_explicit(&counter->n, n, memory_order_relaxed);
}
/* Adds to a shared counter. Any thread may call it. */
static inline void rp_counter_add_shared(rp_counter *counter, uint64_t n)
{
    atomic_fetch_add_explicit(&counter->n, n, memory_order_relaxed);
}
static inline uint64_t rp_counter_get(const rp_counter *counter)
{
    return atomic_load_explicit(&counter->n, memory_order_relaxed);
}

/* The counters of a loop: X(field, name of the metric, type, help text). The type of a value
 * that can decrease is gauge. */
#define RP_LOOP_COUNTERS(X)                                                                    \
    X(connections_opened, "connections_opened_total", "counter", "Connections accepted.")      \
    X(connections, "connections", "gauge", "Connections open now, without those of HTTP/1.1.") \
    X(connections_tls, "connections_tls_total", "counter",                                     \
      "Connections whose TLS handshake succeeded.")                                            \
    X(connections_page, "connections_page_total", "counter", "Connections that use HTTP/1.1.") \
    X(streams, "streams", "gauge", "Calls open now.")                                          \
    X(streams_most, "streams_most", "gauge",                                                   \
      "The most calls that were open at once on each event loop, added up.")                   \
    X(bytes_read, "read_bytes_total", "counter", "Bytes read from connections, after TLS.")    \
    X(bytes_written, "written_bytes_total", "counter",                                         \
      "Bytes written to connections, before TLS.")                                             \
    X(messages_read, "messages_read_total", "counter", "gRPC messages received.")              \
    X(messages_written, "messages_written_total", "counter", "gRPC messages sent.")            \
    X(queued_bytes, "queued_bytes", "gauge",                                                   \
      "Bytes of incomplete messages, of drawn items and of responses not yet sent.")           \
    X(journal_waits, "journal_waiting_calls", "gauge",                                         \
      "Calls whose change waits because the journal is behind.")                               \
    X(rollout_waits, "rollouts_waiting_calls", "gauge", "Calls that wait for rollouts.")       \
    X(leases, "shared_leases", "gauge", "Clients of this host that read shared memory.")       \
    X(shared_held_bytes, "shared_held_bytes", "gauge",                                         \
      "Bytes of chunks that clients of this host hold in shared memory.")                      \
    X(shared_items, "shared_items_total", "counter",                                           \
      "Items sampled without sending their chunks.")                                           \
    X(shared_refused_items, "shared_refused_items_total", "counter",                           \
      "Items whose chunks are in shared memory but were sent, mostly because the client, or "  \
      "all clients of this host together, held as many bytes as they may.")                    \
    X(turns, "loop_turns_total", "counter", "Turns of the event loops.")                       \
    X(rests, "loop_rests_total", "counter",                                                    \
      "Reads that were delayed so that small messages accumulate.")

enum { RP_STATUS_CODES = 17 }; /* the status codes of gRPC, 0 to 16 */

typedef struct rp_loop_metrics {
#define RP_LOOP_FIELD(field, metric, type, help) rp_counter field;
    RP_LOOP_COUNTERS(RP_LOOP_FIELD)
#undef RP_LOOP_FIELD
    rp_counter calls[RP_METHODS][RP_STATUS_CODES]; /* ended calls, by method and status */
    rp_counter refusals[RP_REFUSAL_COUNT];
    rp_counter abuse[RP_ABUSE_KINDS];
} rp_loop_metrics;

/* The counters of a table, of which each loop has a set: X(field, name of the metric, help
 * text). */
#define RP_TABLE_COUNTERS(X)                                                                   \
    X(inserted_items, "inserted_items_total", "Items inserted over the network.")              \
    X(sampled_items, "sampled_items_total", "Items sent as samples.")                          \
    X(inserted_bytes, "inserted_bytes_total",                                                  \
      "Bytes of the messages that carried inserts and their chunks.")                          \
    X(sampled_bytes, "sampled_bytes_total", "Bytes of the messages that carried samples.")

typedef struct rp_table_counters {
#define RP_TABLE_FIELD(field, metric, help) rp_counter field;
    RP_TABLE_COUNTERS(RP_TABLE_FIELD)
#undef RP_TABLE_FIELD
    /* For each inserted item, the time from the arrival of the first item of its batch
     * (rpc/insert_batch.h) until the server knows that the item is in the table. */
    rp_histogram insert_ns;
    rp_histogram sample_ns; /* time of each draw of samples from a table */
} rp_table_counters;

typedef struct rp_metrics rp_metrics;
typedef struct rp_table_metrics rp_table_metrics;

/* Makes the metrics of a server with `loops` (>= 1) event loops. The caller owns them. Errors:
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_metrics_new(const rp_allocator *alloc, size_t loops,
                                      rp_metrics **out);
void rp_metrics_free(rp_metrics *metrics); /* NULL is fine */

size_t rp_metrics_loops(const rp_metrics *metrics);
/* rp_metrics_loop() returns the counters of one loop, rp_metrics_shared() the counters that all
 * other threads share. They are borrowed and valid as long as the metrics. */
rp_loop_metrics *rp_metrics_loop(rp_metrics *metrics, size_t loop);
rp_loop_metrics *rp_metrics_shared(rp_metrics *metrics);

/* Finds or makes the counters of the table `name`. Returns a reference, or NULL if there is no
 * memory. If a table is dropped and created again, its counters continue, unless
 * rp_metrics_forget_table() was called in between. Takes a lock (RP_RANK_METRICS, util/mutex.h)
 * and searches, so a stream should keep the result. Any thread may call it. */
rp_table_metrics *rp_metrics_table(rp_metrics *metrics, const char *name);
void rp_metrics_forget_table(rp_metrics *metrics, const char *name);

rp_table_metrics *rp_table_metrics_ref(rp_table_metrics *table);
void rp_table_metrics_unref(rp_table_metrics *table); /* NULL is fine */
/* Returns the counters of the table on one loop. They are borrowed and valid as long as the
 * caller's reference. */
rp_table_counters *rp_table_metrics_loop(rp_table_metrics *table, size_t loop);

/* Writes the sums of the counters over all loops and the shared set to `*out`. Any thread may
 * call it. */
void rp_metrics_sum(rp_metrics *metrics, rp_loop_metrics *out);
/* The counters of a table, added up over all loops. */
typedef struct rp_table_sums {
#define RP_TABLE_FIELD(field, metric, help) uint64_t field;
    RP_TABLE_COUNTERS(RP_TABLE_FIELD)
#undef RP_TABLE_FIELD
    rp_histogram_sum insert_ns, sample_ns;
} rp_table_sums;
/* Adds up the counters of the table `name`. All sums are 0 if there is no such table. Any
 * thread may call it. */
void rp_metrics_sum_table(rp_metrics *metrics, const char *name, rp_table_sums *out);

#endif
