/* SPDX-License-Identifier: Apache-2.0 */
/* A server in a child process, for benchmarks. */
#ifndef RP_CLI_COMMANDS_BENCH_SERVER_H
#define RP_CLI_COMMANDS_BENCH_SERVER_H

#include <sys/types.h>

#include "cli/text/problem.h"

typedef struct rp_bench_server {
    pid_t process; /* 0: none */
    int fd;        /* closing it ends the server; -1: none */
    char address[32];
} rp_bench_server;

/* Starts the server on a free port of this machine. Call it before any thread is started.
 * RP_INVALID, with the reason. */
RP_NODISCARD rp_status rp_bench_server_start(rp_bench_server *server, rp_problem *problem);
void rp_bench_server_stop(rp_bench_server *server);

#endif
