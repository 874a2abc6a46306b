/* SPDX-License-Identifier: Apache-2.0 */
/* A server in its own process and on its own processors, so that its cost can be measured
 * separately from the cost of the load generator. */
#ifndef BENCH_SERVER_PROCESS_H
#define BENCH_SERVER_PROCESS_H

#include <sched.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

/* The processors of this process: one half for the server (`serve`), the other half for the
 * load generator (`load`). If there is only one processor, both use it. */
typedef struct server_cpus {
    cpu_set_t serve, load;
    size_t serve_count, load_count;
} server_cpus;

server_cpus server_cpus_get(void);

typedef struct server_process {
    pid_t pid;
    int port;
    clockid_t cpu; /* CPU clock of the process */
} server_process;

/* Creates a child process and calls `start(arg)` in it. `start` returns the port of the server,
 * or ends the child. The child runs until server_process_stop() is called or the parent ends.
 * Must be called while the parent has only one thread. */
void server_process_start(server_process *process, const server_cpus *cpus,
                          int (*start)(const void *arg), const void *arg);
void server_process_stop(server_process *process);

/* Returns the bytes of memory of the process. */
size_t server_process_memory(const server_process *process);

/* Returns the seconds of processor time that the process has used. */
double server_process_cpu(const server_process *process);

/* Returns the processor seconds that the whole machine has used so far. */
double server_machine_cpu(void);

#endif
