/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a server. They may take long, and Ctrl-C must end them.
 *
 * Python runs signal handlers on the main thread only, which may be the thread that waits. A
 * request cannot be repeated with short deadlines, as core_wait() does for writers and
 * samplers, because the server would get a new request each time. So a request runs on a thread
 * of its own, while the caller checks for signals. If a handler raises an exception, the
 * request is cancelled. A request that may be repeated first runs on the caller's thread for up
 * to CALL_INLINE_MS, which is enough for nearly all of them.
 *
 * Invariants:
 *   Q1  the caller has one reference to a request, and its thread one while it runs;
 *   Q2  `over` is set once, by the thread, after status and err; `lock` guards it. */
#include "server_call.h"

#include <signal.h>
#include <stdlib.h>

enum { CALL_INLINE_MS = 100, SIGNAL_POLL_MS = 20 };

void *core_request_new(size_t bytes, void (*clear)(void *request))
{
    core_request *r = calloc(1, bytes);
    pthread_condattr_t attr;

    if (r == NULL) return PyErr_NoMemory();
    atomic_init(&r->refs, 1);
    r->clear = clear;
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&r->ended, &attr);
    (void)pthread_condattr_destroy(&attr);
    return r;
}

void core_request_drop(core_request *request)
{
    if (request == NULL) return;
    int before = atomic_fetch_sub(&request->refs, 1);
    assert(before > 0);
    if (before != 1) return;
    request->clear(request);
    pthread_cond_destroy(&request->ended);
    pthread_mutex_destroy(&request->lock);
    rp_cancel_free(request->wait.cancel);
    free(request);
}

void core_request_explain(core_request *r, const char *why)
{
    pthread_mutex_lock(&r->lock);
    (void)snprintf(r->why, sizeof r->why, "%s", why);
    pthread_mutex_unlock(&r->lock);
}

static void *apart_main(void *arg)
{
    core_request *r = arg;

    r->status = r->call(r, r->wait, &r->err);
    pthread_mutex_lock(&r->lock);
    assert(!r->over);
    r->over = true; /* Q2 */
    pthread_cond_signal(&r->ended);
    pthread_mutex_unlock(&r->lock);
    core_request_drop(r);
    return NULL;
}

/* Returns true if the call ends within SIGNAL_POLL_MS. Without the GIL. */
static bool apart_poll(core_request *r)
{
    struct timespec until;
    bool over;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += SIGNAL_POLL_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    pthread_mutex_lock(&r->lock);
    while (!r->over && pthread_cond_timedwait(&r->ended, &r->lock, &until) == 0)
        ;
    over = r->over;
    pthread_mutex_unlock(&r->lock);
    return over;
}

/* Starts the thread, with a reference to the request. The thread blocks all signals, since
 * Python's threads handle them. */
static int apart_start(core_request *r, pthread_t *thread)
{
    sigset_t all, before;
    int failed;

    r->over = false;
    atomic_fetch_add(&r->refs, 1);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(thread, NULL, apart_main, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) core_request_drop(r);
    return failed;
}

/* Logs what a call waits for: the error of the last attempt, or its servers. */
static int warn(core_patience *patience, core_request *r, const rp_error *err)
{
    char text[RP_ERROR_TEXT_BYTES];
    size_t count;

    pthread_mutex_lock(&r->lock);
    (void)snprintf(text, sizeof text, "%s", r->why);
    pthread_mutex_unlock(&r->lock);
    if (text[0] != '\0') return core_patience_warn(patience, text);
    if (err->text[0] == '\0' && r->what != NULL) return core_patience_warn(patience, r->what);
    if (err->text[0] != '\0' || r->peer == NULL) return core_patience_warn(patience, err->text);
    count = rp_client_shard_count(r->peer);
    (void)snprintf(text, sizeof text, "no answer yet from %.128s",
                   rp_client_shard_address(r->peer, 0));
    if (count > 1)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), " and %zu more",
                       count - 1);
    return core_patience_warn(patience, text);
}

/* Makes the call on a thread of its own. Returns 0 with `*status` set, or -1 with an exception.
 */
static int call_apart(core_call call, core_request *r, int64_t until_ns,
                      core_patience *patience, rp_status *status, rp_error *err)
{
    pthread_t thread;
    bool over = false, raised = false;

    r->call = call;
    r->wait.until_ns = until_ns;
    if (r->wait.cancel == NULL && rp_cancel_new(&r->wait.cancel) != RP_OK) {
        PyErr_NoMemory();
        return -1;
    }
    if (apart_start(r, &thread) != 0) {
        PyErr_SetString(PyExc_RuntimeError, "no thread for a call to the server");
        return -1;
    }
    while (!over && !raised) {
        Py_BEGIN_ALLOW_THREADS;
        over = apart_poll(r);
        Py_END_ALLOW_THREADS;
        raised = !over && PyErr_CheckSignals() != 0;
        if (!over && !raised && core_patience_is_over(patience))
            raised = warn(patience, r, err) != 0;
    }
    if (raised) rp_cancel_fire(r->wait.cancel);
    Py_BEGIN_ALLOW_THREADS;
    pthread_join(thread, NULL);
    Py_END_ALLOW_THREADS;
    assert(r->over);
    *status = r->status;
    *err = r->err;
    return raised ? -1 : 0;
}

/* Makes the call once. Returns 0 with `*status` set, or -1 with an exception. */
static int call_once(core_call call, core_request *r, int flags, int64_t until_ns,
                     core_patience *patience, rp_status *status, rp_error *err)
{
    bool briefly = until_ns - patience->since_ns <= CALL_INLINE_MS * 1000000LL;

    *status = RP_DEADLINE;
    if ((flags & CORE_CALL_AGAIN) || briefly) {
        Py_BEGIN_ALLOW_THREADS;
        rp_wait wait = {until_ns, NULL};
        if (!briefly) wait = rp_wait_ms(CALL_INLINE_MS);
        *status = call(r, wait, err);
        Py_END_ALLOW_THREADS;
    }
    if (*status != RP_DEADLINE || briefly) return 0;
    if (PyErr_CheckSignals() != 0) return -1;
    return call_apart(call, r, until_ns, patience, status, err);
}

/* Returns true if waiting until a server can be reached does not help. */
static bool is_final(const core_request *r, int flags)
{
    return r->is_final || !(flags & CORE_CALL_PATIENT) || core_is_refused(r->peer);
}

int core_call_server(core_call call, core_request *request, int flags, int64_t timeout_ms)
{
    int64_t until_ns = timeout_ms < 0 ? RP_FOREVER : rp_wait_ms(timeout_ms).until_ns;
    core_patience patience = core_patience_begin();
    rp_status status;
    rp_error err = {0};

    assert(atomic_load(&request->refs) == 1);
    for (;;) {
        if (call_once(call, request, flags, until_ns, &patience, &status, &err) != 0) return -1;
        if (status != RP_UNAVAILABLE || is_final(request, flags)) break;
        if (rp_now_ns() >= until_ns) {
            status = err.code = RP_DEADLINE;
            break;
        }
        Py_BEGIN_ALLOW_THREADS;
        core_sleep_ms(SIGNAL_POLL_MS);
        Py_END_ALLOW_THREADS;
        if (PyErr_CheckSignals() != 0) return -1;
        if (core_patience_is_over(&patience) && warn(&patience, request, &err) != 0) return -1;
    }
    if (status == RP_OK) return 0;
    core_raise(status, &err);
    return -1;
}
