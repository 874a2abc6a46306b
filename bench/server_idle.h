/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection costs that does nothing. */
#ifndef BENCH_SERVER_IDLE_H
#define BENCH_SERVER_IDLE_H

#include <stdbool.h>

#include "server_process.h"

typedef struct server_idle {
    size_t connections;
    double bytes; /* of the server's memory, each */
    double cpu;   /* of one processor, all together */
} server_idle;

/* Opens so many connections, or as many as the limit of open files allows, with one
 * InsertStream open on each if `with_call`, lets them rest for so many seconds and closes them.
 */
server_idle server_idle_measure(const server_process *process, size_t connections,
                                bool with_call, double seconds);

/* Asks for as many open files as we can get; before the first server is started. */
void server_idle_raise_limit(void);

#endif
