/* SPDX-License-Identifier: Apache-2.0 */
#include "util/thread.h"

#include <assert.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

bool rp_thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg)
{
    sigset_t all, before;
    bool started;

    assert(strlen(name) <= 15);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits the mask */
    started = pthread_create(thread, NULL, run, arg) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started) (void)pthread_setname_np(*thread, name);
    return started;
}

bool rp_thread_detach(const char *name, void *(*run)(void *arg), void *arg)
{
    pthread_t thread;

    /* The handle is valid until the thread is detached, even if it has ended. */
    if (!rp_thread_start(&thread, name, run, arg)) return false;
    (void)pthread_detach(thread);
    return true;
}

size_t rp_thread_processors(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;

    return n < 1 ? 1 : (size_t)n;
}
