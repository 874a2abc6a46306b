/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/signals.h"

#include <assert.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

static sigset_t waited_for(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGUSR1);
    return set;
}

void rp_signals_block(void)
{
    sigset_t set = waited_for();

    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a write beyond the size limit fails with EFBIG instead */
}

void rp_signals_restore(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

rp_signal rp_signals_wait(int64_t timeout_ms, int *number)
{
    struct timespec timeout = {(time_t)(timeout_ms / 1000), (timeout_ms % 1000) * 1000000};
    sigset_t set = waited_for();

    assert(number != NULL);
    *number = timeout_ms < 0 ? sigwaitinfo(&set, NULL) : sigtimedwait(&set, NULL, &timeout);
    switch (*number) {
    case SIGTERM:
    case SIGINT: return RP_SIGNAL_STOP;
    case SIGHUP: return RP_SIGNAL_RELOAD;
    case SIGUSR1: return RP_SIGNAL_WAKE;
    default: return RP_SIGNAL_NONE; /* EAGAIN, or EINTR after SIGSTOP and SIGCONT */
    }
}

void rp_signals_wake(pthread_t waiting)
{
    (void)pthread_kill(waiting, SIGUSR1);
}
