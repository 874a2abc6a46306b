/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the memory and processor time that an idle connection costs a server. */
#ifndef BENCH_SERVER_IDLE_H
#define BENCH_SERVER_IDLE_H

#include <stdbool.h>

#include "server_process.h"

typedef struct server_idle {
    size_t connections;
    double bytes; /* bytes of the server's memory per connection */
    double cpu;   /* processor time per second that all connections together cost */
} server_idle;

/* Opens `connections` connections, or as many as the limit of open files allows. If `with_call`
 * is true, also opens a call of InsertStream on each connection. Keeps them idle for `seconds`
 * and closes them. */
server_idle server_idle_measure(const server_process *process, size_t connections,
                                bool with_call, double seconds);

/* Raises the limit of open files as far as possible. The caller must call it before the first
 * server starts. */
void server_idle_raise_limit(void);

#endif
