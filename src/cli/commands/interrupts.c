/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants:
 *   I1  `cancel` is NULL exactly if the thread does not run;
 *   I2  `number` is 0 or the first signal that asked to stop. */
#include "cli/commands/interrupts.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static sigset_t waited_for(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGWINCH);
    (void)sigaddset(&set, SIGUSR2); /* from rp_interrupts_stop() */
    return set;
}

static void *wait_main(void *ctx)
{
    rp_interrupts *in = ctx;
    sigset_t set = waited_for();
    siginfo_t info;

    assert(in->cancel != NULL); /* I1 */
    for (;;) {
        int number = sigwaitinfo(&set, &info);

        if (number == SIGUSR2 && info.si_pid == getpid()) return NULL;
        if (number == SIGINT || number == SIGTERM || number == SIGHUP) {
            if (atomic_exchange(&in->number, number) != 0) _exit(128 + number);
            rp_cancel_fire(in->cancel);
        }
        /* The write fails if the pipe is full; then it is readable already. */
        if (number > 0) (void)!write(in->write_fd, "", 1);
    }
}

rp_status rp_interrupts_start(rp_interrupts *in)
{
    sigset_t set = waited_for();
    int fds[2];

    *in = (rp_interrupts){.wake_fd = -1, .write_fd = -1};
    if (rp_cancel_new(&in->cancel) != RP_OK) return RP_NO_RESOURCE;
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) goto fail;
    in->wake_fd = fds[0];
    in->write_fd = fds[1];
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    if (pthread_create(&in->thread, NULL, wait_main, in) == 0) return RP_OK;
    (void)close(fds[0]);
    (void)close(fds[1]);
fail:
    rp_cancel_free(in->cancel);
    in->cancel = NULL;
    return RP_NO_RESOURCE;
}

void rp_interrupts_stop(rp_interrupts *in)
{
    if (in->cancel == NULL) return;
    assert(in->wake_fd >= 0 && in->write_fd >= 0); /* I1 */
    (void)pthread_kill(in->thread, SIGUSR2);
    (void)pthread_join(in->thread, NULL);
    (void)close(in->wake_fd);
    (void)close(in->write_fd);
    rp_cancel_free(in->cancel);
    in->cancel = NULL;
}

void rp_interrupts_drain(rp_interrupts *in)
{
    char bytes[64];

    while (read(in->wake_fd, bytes, sizeof bytes) > 0) continue;
}
