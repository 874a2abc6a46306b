/* SPDX-License-Identifier: Apache-2.0 */
/* Runs test cases over every transport by which a client can reach its tables.
 *
 *   static void something_works(rp_test_transport *t)
 *   {
 *       const char *bag = rp_test_bag(t);
 *       ... t->client ...
 *   }
 *
 *   int main(void)
 *   {
 *       static const rp_test_case cases[] = {RP_TEST_CASE(something_works)};
 *       return rp_test_over_transports(RP_TEST_REPRISE, cases, COUNT_OF(cases));
 *   }
 *
 * Each case is a separate test on each transport. Servers are processes. Tables that a case
 * makes are dropped after it. At the end all memory of the client must have been freed. */
#ifndef RP_TEST_TRANSPORTS_H
#define RP_TEST_TRANSPORTS_H

#include "reprise/reprise.h"
#include "reprise/sampler.h"
#include "reprise/step_writer.h"
#include "reprise/structured_writer.h"
#include "support/certificates.h"
#include "support/process.h"
#include "support/unit.h"

typedef enum rp_test_way {
    RP_TEST_TCP,
    RP_TEST_LOCAL,
    RP_TEST_TLS,
    RP_TEST_UNIX,   /* without shared memory */
    RP_TEST_SHARED, /* with it */
    RP_TEST_SHARDS, /* three of them, over TCP */
    RP_TEST_WAYS,
} rp_test_way;

enum { RP_TEST_SHARD_COUNT = 3, RP_TEST_MAX_TABLES = 16, RP_TEST_WAIT_MS = 120000 };

typedef struct rp_test_transport {
    rp_test_way way;
    const char *name;
    rp_test_oom oom; /* counts what the client allocates */
    rp_allocator alloc;
    rp_client *client;
    rp_store *store; /* RP_TEST_LOCAL */
    rp_test_process servers[RP_TEST_SHARD_COUNT];
    size_t server_count;
    rp_test_certificates certificates; /* RP_TEST_TLS */
    rp_test_identity identity;
    bool failed; /* a case has failed: what it leaves is not checked */
    size_t table_number;
    char tables[RP_TEST_MAX_TABLES][16];
    size_t table_count;
    rp_error err;
} rp_test_transport;

void rp_test_transport_open(rp_test_transport *t, rp_test_way way, const char *program);
void rp_test_transport_close(rp_test_transport *t);

typedef struct rp_test_case {
    const char *name;
    void (*run)(rp_test_transport *t);
    unsigned ways; /* bits, by rp_test_way; 0: all */
} rp_test_case;
/* clang-format off */
#define RP_TEST_CASE(function) {#function, function, 0}
#define RP_TEST_CASE_OVER(ways, function) {#function, function, (ways)}
/* clang-format on */

/* Runs each case over each transport, or over the one that RP_TEST_WAY names. Returns the exit
 * status for main(). */
int rp_test_over_transports(const char *program, const rp_test_case *cases, size_t count);

/* A wait with a long deadline, for events that must happen much earlier. */
static inline rp_wait rp_test_soon(void)
{
    return rp_wait_ms(RP_TEST_WAIT_MS);
}

/* Makes a table on all shards. Returns its name, which is generated and valid until the case
 * ends. */
const char *rp_test_make_table(rp_test_transport *t, const rp_table_options *options);
void rp_test_drop_tables(rp_test_transport *t);
/* Makes a table that gives each item once, the oldest first. */
const char *rp_test_bag(rp_test_transport *t);
/* Makes a table that samples uniformly, with repetition. */
const char *rp_test_replay(rp_test_transport *t);

/* Returns the information of all shards on a table, with counts and weights added up, and
 * without strings. */
rp_client_table rp_test_table_sum(rp_test_transport *t, const char *table);
/* Waits until `count` calls wait at the table. */
void rp_test_await_waiting(rp_test_transport *t, const char *table, size_t count);

static inline rp_shape rp_test_shape(int32_t rank, int64_t a, int64_t b)
{
    return (rp_shape){rank, {a, b}};
}

static inline rp_tensor rp_test_int(const int32_t *x)
{
    return (rp_tensor){RP_INT32, {0, {0}}, x};
}

/* Makes a writer with this history and length of chunks (0: tuned). */
rp_trajectory_writer *rp_test_writer(rp_test_transport *t, int32_t history, int32_t length);
/* Appends an int32 to column 0. */
rp_ref rp_test_append(rp_test_transport *t, rp_trajectory_writer *writer, int32_t x);
/* Creates an item of one column. Returns its key. */
uint64_t rp_test_create(rp_test_transport *t, rp_trajectory_writer *writer, const char *table,
                        double priority, const rp_ref *refs, size_t count);
void rp_test_flush(rp_test_transport *t, rp_trajectory_writer *writer);
/* Inserts items of one int32 each, first, first + 1, ..., with the priority 1. Sets `keys`,
 * which may be NULL. */
void rp_test_fill_table(rp_test_transport *t, const char *table, int32_t first, size_t count,
                        uint64_t *keys);

/* Makes a sampler that ends after max_samples (0: never) and waits for ever. */
rp_sampler *rp_test_sampler(rp_test_transport *t, const char *table, int64_t max_samples);
/* Draws exactly `count` samples with a new sampler. */
void rp_test_draw_samples(rp_test_transport *t, const char *table, size_t count,
                          rp_sample *out);
/* The same from a table that gives each item once. Sorts the samples in the order of `keys`. */
void rp_test_take_keys(rp_test_transport *t, const char *table, const uint64_t *keys,
                       size_t count, rp_sample *out);

/* Checks a column of a sample. The first dimension of `shape` counts rows, if there are any. */
void rp_test_expect(rp_test_transport *t, const rp_sample *sample, size_t column,
                    rp_dtype dtype, rp_shape shape, const void *data);
/* Checks that a column has these int32 scalars as rows. */
void rp_test_expect_ints(rp_test_transport *t, const rp_sample *sample, size_t column,
                         const int32_t *rows, size_t count);
#define RP_TEST_EXPECT_INTS(t, sample, column, ...)                                            \
    rp_test_expect_ints((t), (sample), (column), (const int32_t[]){__VA_ARGS__},               \
                        sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))
/* Returns the only int32 of the first column. */
int32_t rp_test_int_of(rp_test_transport *t, const rp_sample *sample);

#endif
