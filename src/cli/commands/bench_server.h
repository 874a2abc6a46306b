/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a server in a child process, for `reprise bench`. */
#ifndef RP_CLI_COMMANDS_BENCH_SERVER_H
#define RP_CLI_COMMANDS_BENCH_SERVER_H

#include <sys/types.h>

#include "cli/text/problem.h"

typedef struct rp_bench_server {
    pid_t process;    /* the child process; 0: none */
    int fd;           /* closing this socket ends the server; -1: none */
    char address[32]; /* "127.0.0.1:PORT" */
} rp_bench_server;

/* Starts the server on a free port of 127.0.0.1. Must be called before any thread is started.
 * On a failure, returns RP_INVALID with the reason. */
RP_NODISCARD rp_status rp_bench_server_start(rp_bench_server *server, rp_problem *problem);
void rp_bench_server_stop(rp_bench_server *server);

#endif
