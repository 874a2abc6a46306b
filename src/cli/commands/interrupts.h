/* SPDX-License-Identifier: Apache-2.0 */
/* Makes Ctrl-C end the waits of a command: a thread waits for signals, and then fires a cancel
 * token (reprise/wait.h). */
#ifndef RP_CLI_COMMANDS_INTERRUPTS_H
#define RP_CLI_COMMANDS_INTERRUPTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "reprise/wait.h"

typedef struct rp_interrupts {
    rp_cancel *cancel; /* fired by SIGINT, SIGTERM and SIGHUP */
    int wake_fd;  /* read end of a pipe: readable after these signals, and after the terminal
                     was resized */
    int write_fd; /* write end of the pipe */
    atomic_int number; /* number of the first signal that fired the token; 0: none so far */
    pthread_t thread;
} rp_interrupts;

/* Blocks the signals in this thread and in the threads that it starts later, ignores SIGPIPE,
 * and starts the thread that waits for signals. Must be called before other threads are
 * started. After the first SIGINT, SIGTERM or SIGHUP, a second one ends the process. Errors:
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_interrupts_start(rp_interrupts *interrupts);
void rp_interrupts_stop(rp_interrupts *interrupts);

/* Reads all bytes from wake_fd, after which it is no longer readable. */
void rp_interrupts_drain(rp_interrupts *interrupts);

#endif
