/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C for commands that wait: a thread waits for signals and fires a cancel token. */
#ifndef RP_CLI_COMMANDS_INTERRUPTS_H
#define RP_CLI_COMMANDS_INTERRUPTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "reprise/wait.h"

typedef struct rp_interrupts {
    rp_cancel *cancel; /* fired by SIGINT, SIGTERM and SIGHUP */
    int wake_fd;       /* readable after these signals, and after the terminal is resized */
    int write_fd;
    atomic_int number; /* of the signal; 0: none so far */
    pthread_t thread;
} rp_interrupts;

/* Blocks the signals in this thread and in the threads that it starts later, ignores SIGPIPE,
 * and starts the thread that waits for signals. Call it before other threads are started. A
 * second signal ends the process.
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_interrupts_start(rp_interrupts *interrupts);
void rp_interrupts_stop(rp_interrupts *interrupts);

/* Reads all bytes of wake_fd, so that it is no longer readable. */
void rp_interrupts_drain(rp_interrupts *interrupts);

#endif
