/* SPDX-License-Identifier: Apache-2.0 */
/* Signals without handlers: every thread blocks them, and one thread waits for them. */
#ifndef RP_CLI_SERVE_SIGNALS_H
#define RP_CLI_SERVE_SIGNALS_H

#include <pthread.h>
#include <stdint.h>

typedef enum rp_signal {
    RP_SIGNAL_NONE,   /* no signal within the timeout */
    RP_SIGNAL_STOP,   /* SIGTERM or SIGINT */
    RP_SIGNAL_RELOAD, /* SIGHUP */
    RP_SIGNAL_WAKE,   /* rp_signals_wake(), or SIGUSR1 */
} rp_signal;

/* Blocks the signals for this thread and those it starts from now on, and ignores SIGPIPE. Call
 * it before the first thread is started. */
void rp_signals_block(void);

/* Waits for the next signal, at most `timeout_ms`; below 0: for ever. Sets `*number` to the
 * number of the signal. */
rp_signal rp_signals_wait(int64_t timeout_ms, int *number);

/* Makes rp_signals_wait() of the waiting thread return RP_SIGNAL_WAKE. Any thread. */
void rp_signals_wake(pthread_t waiting);

/* Makes SIGTERM and SIGINT end the process. Call it when no thread waits for them any more. */
void rp_signals_restore(void);

#endif
