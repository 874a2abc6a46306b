/* SPDX-License-Identifier: Apache-2.0 */
/* The server of Reprise with the tables of the benchmarks: "t0", "t1", ..., which sample
 * uniformly and evict the oldest item. */
#ifndef BENCH_SERVER_OURS_H
#define BENCH_SERVER_OURS_H

#include <stddef.h>
#include <stdint.h>

typedef struct server_ours_options {
    size_t table_count;
    int64_t max_size; /* items of all tables together */
    size_t loops;     /* number of the server's event loop threads */
    int port;         /* 0: any free port */
} server_ours_options;

/* Starts the server on 127.0.0.1 and returns the port. `options` is a server_ours_options. The
 * server runs until the process ends. */
int server_ours_start(const void *options);

#endif
