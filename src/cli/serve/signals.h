/* SPDX-License-Identifier: Apache-2.0 */
/* Receives signals without signal handlers, for `reprise serve`: all threads block the signals,
 * and one thread waits for them. */
#ifndef RP_CLI_SERVE_SIGNALS_H
#define RP_CLI_SERVE_SIGNALS_H

#include <pthread.h>
#include <stdint.h>

typedef enum rp_signal {
    RP_SIGNAL_NONE,   /* no signal arrived within the timeout */
    RP_SIGNAL_STOP,   /* SIGTERM or SIGINT */
    RP_SIGNAL_RELOAD, /* SIGHUP */
    RP_SIGNAL_WAKE,   /* rp_signals_wake(), or SIGUSR1 */
} rp_signal;

/* Blocks the signals in this thread and in the threads that it starts later, and ignores
 * SIGPIPE. Must be called before any thread is started. */
void rp_signals_block(void);

/* Waits for the next signal for at most `timeout_ms` milliseconds, or without limit if that is
 * negative. Sets `*number` to the number of the signal. */
rp_signal rp_signals_wait(int64_t timeout_ms, int *number);

/* Makes rp_signals_wait() in the thread `waiting` return RP_SIGNAL_WAKE. Any thread may call
 * this. */
void rp_signals_wake(pthread_t waiting);

/* Restores the default effect of SIGTERM and SIGINT, which is to end the process. The caller
 * must make sure that no thread waits for them any more. */
void rp_signals_restore(void);

#endif
