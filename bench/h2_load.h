/* SPDX-License-Identifier: Apache-2.0 */
/* A load generator for servers that have Reverb's gRPC methods InsertStream and SampleStream.
 * It uses many connections on few threads. Messages are built in advance, so that one core of
 * the load generator keeps one core of the server busy.
 *
 * The responses are checked: each insert must be confirmed exactly once, each stream must end
 * with the status OK after all requested samples, and some of the samples are compared byte by
 * byte. If a check fails, the program ends. */
#ifndef BENCH_H2_LOAD_H
#define BENCH_H2_LOAD_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* If samples are small, the number of samples in a request is a multiple of this. */
enum { H2_FEW_SAMPLES = 64 };

typedef enum h2_kind {
    H2_INSERT = 0,    /* insert as many items as the server accepts */
    H2_SAMPLE = 1,    /* sample as many items as the server sends */
    H2_ROUNDTRIP = 2, /* insert one item, wait for its confirmation, repeat */
} h2_kind;

/* Zero-initialise it. If a field is 0, the default after the colon in its comment is used. */
typedef struct h2_load_options {
    int port; /* port of the server on 127.0.0.1 */
    h2_kind kind;
    size_t payload_bytes; /* bytes of an item: 400 */
    size_t items;         /* items in one insert request: as many as fit into 32 KiB, but 1 to
                             64 */
    size_t table_count;   /* number of tables "t0", "t1", ..., used in turn: 1 */
    size_t connections;   /* default: 1 */
    size_t threads;       /* default: 1 */
    size_t samples; /* samples in one request: as many as fit into 2 MiB, fewer if there are
                       many connections. A stream has four open requests */
    const cpu_set_t *cpus;        /* processors for the threads: all */
    double warm_seconds, seconds; /* seconds of warm-up and of measurement: 0.2 and 1 */
    uint64_t item_limit;  /* stop after about this number of items instead of after a time: no
                             limit */
    bool yardstick;       /* the server is a yardstick (yardstick.h); H2_ROUNDTRIP then uses its
                             method Echo */
    clockid_t server_cpu; /* CPU clock of the server's process; 0: the server's CPU time is not
                             measured */
} h2_load_options;

/* The results of the time after the warm-up, or of the whole run if there is an item limit. */
typedef struct h2_load_result {
    double seconds;
    uint64_t items;
    uint64_t total;    /* items of the whole run */
    uint64_t checked;  /* samples that were compared */
    double server_cpu; /* seconds */
    double load_cpu;   /* seconds, of the threads of the load generator */
    double others;     /* number of processors that other programs used, on average */
    double p50_us, p99_us, p999_us; /* percentiles of the roundtrip time */
} h2_load_result;

h2_load_result h2_load_run(const h2_load_options *options);

/* Returns the default of h2_load_options.items for this payload. */
size_t h2_load_default_items(size_t payload_bytes);

/* Opens a blocking connection to the port on 127.0.0.1 and returns its descriptor. If this
 * fails, ends the program. */
int h2_load_connect(int port);

#endif
