/* SPDX-License-Identifier: Apache-2.0 */
/* A server in a process of its own, on processors of its own, so that what it costs can be told
 * from what the load costs. */
#ifndef BENCH_SERVER_PROCESS_H
#define BENCH_SERVER_PROCESS_H

#include <sched.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

/* Which processors of those we may use serve, and which make the load: half and half. With one
 * they share it. */
typedef struct server_cpus {
    cpu_set_t serve, load;
    size_t serve_count, load_count;
} server_cpus;

server_cpus server_cpus_get(void);

typedef struct server_process {
    pid_t pid;
    int port;
    clockid_t cpu; /* time it has used */
} server_process;

/* Runs `start` in a new process, which lives on until server_process_stop() or until we end.
 * `start` returns a port, or ends the process. Call it while there is only one thread. */
void server_process_start(server_process *process, const server_cpus *cpus,
                          int (*start)(const void *arg), const void *arg);
void server_process_stop(server_process *process);

/* Bytes of memory it has. */
size_t server_process_memory(const server_process *process);

/* Seconds of processor time it has used. */
double server_process_cpu(const server_process *process);

/* Processor seconds that the whole machine has used up to now. */
double server_machine_cpu(void);

#endif
