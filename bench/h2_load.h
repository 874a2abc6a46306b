/* SPDX-License-Identifier: Apache-2.0 */
/* Load for a server that speaks Reverb's streams: many connections on few threads, messages
 * built before, so that one core of load keeps one core of server busy.
 *
 * What it gets is checked: each insert must be confirmed exactly once, each stream must end
 * with the status OK and all that was asked for, and some of the samples are looked at byte by
 * byte. A run that fails any of it ends the program. */
#ifndef BENCH_H2_LOAD_H
#define BENCH_H2_LOAD_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Requests for small samples ask for a multiple of so many. */
enum { H2_FEW_SAMPLES = 64 };

typedef enum h2_kind {
    H2_INSERT = 0,    /* as many items as the server takes */
    H2_SAMPLE = 1,    /* as many as it gives */
    H2_ROUNDTRIP = 2, /* one item, wait for its confirmation, and again */
} h2_kind;

/* Zero-initialise it; what is 0 has the default of the comment. */
typedef struct h2_load_options {
    int port; /* of 127.0.0.1 */
    h2_kind kind;
    size_t payload_bytes;  /* of an item: 400 */
    size_t items;          /* in one insert request: as many as fit into 32 KiB */
    size_t table_count;    /* "t0" and so on, in turn: 1 */
    size_t connections;    /* 1 */
    size_t threads;        /* 1 */
    size_t samples;        /* asked for at once, four times: up to 2 MiB, less if there are many
                              connections */
    const cpu_set_t *cpus; /* where the threads run: anywhere */
    double warm_seconds, seconds; /* 0.2 and 1 */
    uint64_t item_limit;  /* stop after about so many, however long it takes: no limit */
    bool yardstick;       /* the server is one: a roundtrip is an echo */
    clockid_t server_cpu; /* of the server's process; 0: not read */
} h2_load_options;

/* Of the time after warming up, unless there is an item limit. */
typedef struct h2_load_result {
    double seconds;
    uint64_t items;
    uint64_t total;    /* the same from the first to the last */
    uint64_t checked;  /* samples that were looked at */
    double server_cpu; /* seconds */
    double load_cpu;   /* seconds, of the load's threads */
    double others;     /* processors that neither of the two used, but other programs */
    double p50_us, p99_us, p999_us; /* of roundtrips */
} h2_load_result;

h2_load_result h2_load_run(const h2_load_options *options);

/* What a request carries when `items` is left open. */
size_t h2_load_default_items(size_t payload_bytes);

/* A blocking connection to the port of 127.0.0.1. */
int h2_load_connect(int port);

#endif
