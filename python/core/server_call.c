/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that reach a server may take long, and Ctrl-C must end them all the same. Python runs
 * signal handlers on its main thread only, which is the one that waits; and a call cannot be
 * made again and again with short deadlines, as core_wait() does with the waits of writers and
 * samplers, because each time it would be a new call on the server. So a call is made on a
 * thread of its own while the caller looks out for signals, and is cancelled if one raises.
 * Those that may be made twice are first given CALL_INLINE_MS on the caller's thread, which is
 * enough for nearly all of them, and cost nothing more. */
#include "server_call.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

enum { CALL_INLINE_MS = 100, SIGNAL_POLL_MS = 20 };

typedef struct apart {
    core_call call;
    void *arg;
    rp_wait wait;
    rp_error err;
    rp_status status;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over; /* guarded by lock */
} apart;

static void *apart_main(void *arg)
{
    apart *a = arg;

    a->status = a->call(a->arg, a->wait, &a->err);
    pthread_mutex_lock(&a->lock);
    a->over = true;
    pthread_cond_signal(&a->ended);
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* Without the GIL: true if the call ended within SIGNAL_POLL_MS. */
static bool apart_poll(apart *a)
{
    struct timespec until;
    bool over;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += SIGNAL_POLL_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    pthread_mutex_lock(&a->lock);
    while (!a->over && pthread_cond_timedwait(&a->ended, &a->lock, &until) == 0)
        ;
    over = a->over;
    pthread_mutex_unlock(&a->lock);
    return over;
}

/* Starts the thread with every signal blocked: they are for Python's threads. */
static int apart_start(apart *a, pthread_t *thread)
{
    sigset_t all, before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(thread, NULL, apart_main, a);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

/* Makes the call on a thread of its own. 0 with `*status` set, or -1 with an exception. */
static int call_apart(core_call call, void *arg, int64_t until_ns, rp_status *status,
                      rp_error *err)
{
    apart a = {.call = call, .arg = arg, .wait = {until_ns, NULL}};
    pthread_t thread;
    bool over = false, raised = false;

    if (rp_cancel_new(&a.wait.cancel) != RP_OK) {
        PyErr_NoMemory();
        return -1;
    }
    pthread_mutex_init(&a.lock, NULL);
    pthread_cond_init(&a.ended, NULL);
    if (apart_start(&a, &thread) != 0) {
        PyErr_SetString(PyExc_RuntimeError, "no thread for a call to the server");
        raised = true;
        goto out;
    }
    while (!over && !raised) {
        Py_BEGIN_ALLOW_THREADS;
        over = apart_poll(&a);
        Py_END_ALLOW_THREADS;
        raised = !over && PyErr_CheckSignals() != 0;
    }
    if (raised) rp_cancel_fire(a.wait.cancel);
    Py_BEGIN_ALLOW_THREADS;
    pthread_join(thread, NULL);
    Py_END_ALLOW_THREADS;
    *status = a.status;
    *err = a.err;
out:
    pthread_cond_destroy(&a.ended);
    pthread_mutex_destroy(&a.lock);
    rp_cancel_free(a.wait.cancel);
    return raised ? -1 : 0;
}

/* Tries once. 0 with `*status` set, or -1 with an exception. */
static int call_once(core_call call, void *arg, int flags, int64_t until_ns, bool briefly,
                     rp_status *status, rp_error *err)
{
    *status = RP_DEADLINE;
    if ((flags & CORE_CALL_AGAIN) || briefly) {
        Py_BEGIN_ALLOW_THREADS;
        rp_wait wait = {until_ns, NULL};
        if (!briefly) wait = rp_wait_ms(CALL_INLINE_MS);
        *status = call(arg, wait, err);
        Py_END_ALLOW_THREADS;
    }
    if (*status != RP_DEADLINE || briefly) return 0;
    if (PyErr_CheckSignals() != 0) return -1;
    return call_apart(call, arg, until_ns, status, err);
}

int core_call_server(core_call call, void *arg, int flags, int64_t timeout_ms)
{
    int64_t until_ns = timeout_ms < 0 ? RP_FOREVER : rp_wait_ms(timeout_ms).until_ns;
    bool briefly = timeout_ms >= 0 && timeout_ms <= CALL_INLINE_MS;
    rp_status status;
    rp_error err = {0};

    for (;;) {
        if (call_once(call, arg, flags, until_ns, briefly, &status, &err) != 0) return -1;
        if (status != RP_UNAVAILABLE || !(flags & CORE_CALL_PATIENT)) break;
        if (rp_now_ns() >= until_ns) {
            status = RP_DEADLINE;
            break;
        }
        Py_BEGIN_ALLOW_THREADS;
        nanosleep(&(struct timespec){.tv_nsec = SIGNAL_POLL_MS * 1000000L}, NULL);
        Py_END_ALLOW_THREADS;
        if (PyErr_CheckSignals() != 0) return -1;
    }
    if (status == RP_OK) return 0;
    core_raise(status, &err);
    return -1;
}
