/* SPDX-License-Identifier: Apache-2.0 */
/* Makes requests to servers. Ctrl-C can interrupt the wait for the response: a request that
 * takes long runs on a thread of its own, while the caller's thread checks for signals. */
#ifndef REPRISE_PYTHON_SERVER_CALL_H
#define REPRISE_PYTHON_SERVER_CALL_H

#include "core.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    CORE_CALL_AGAIN = 1,   /* repeating the request is allowed: a second run does no harm */
    CORE_CALL_PATIENT = 2, /* if no server can be reached, wait until one can, as Reverb does */
};

/* A request. It is the first member of a struct that also has the arguments and results. The
 * struct is on the heap, because the caller's thread can disappear with its stack when the
 * interpreter ends, while the request's thread still uses the struct. The struct is refcounted,
 * because either of the two threads can be the last to use it. All members but `peer`, `what`
 * and `is_final` are private to server_call.c. */
typedef struct core_request {
    atomic_int refs;
    void (*clear)(void *request);
    core_call call;
    rp_client *peer;  /* set by the caller: warnings about a long wait name the servers of this
                         client; NULL: they name no server */
    const char *what; /* set by the caller: what the call waits for; NULL: a response */
    bool is_final;    /* set by `call`: the server has possibly executed the request, so
                         core_call_server() does not repeat it */
    rp_wait wait;
    rp_error err;
    rp_status status;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over;                     /* `call` has returned; `lock` guards this and `why` */
    char why[RP_ERROR_TEXT_BYTES]; /* the reason of the wait; empty: not known */
} core_request;

/* Allocates a struct of `bytes` bytes, in which all bytes after its core_request are zero.
 * `clear` frees the members of the struct when the last reference is dropped, on any thread and
 * without the GIL. */
void *core_request_new(size_t bytes, void (*clear)(void *request));
void core_request_drop(core_request *request); /* drops the caller's reference */

/* Sets `why`, the reason of the wait, for warnings. `call` uses this function while it runs,
 * without the GIL. */
void core_request_explain(core_request *request, const char *why);

/* Runs `call` without the GIL, with the request as its argument. Returns -1 with an exception
 * if a signal handler raises one, or if the status is not RP_OK. The results of a failed call
 * are freed with the request. */
int core_call_server(core_call call, core_request *request, int flags, int64_t timeout_ms);

/* client.c: like core_call_server(), for a request that must not be repeated, such as the
 * creation of a table: a second run would fail if the first succeeded and its response was
 * lost. Waits until a server can be reached, and then makes the request once. */
int core_client_call_there(core_client *self, core_call call, core_request *request,
                           int64_t timeout_ms);

#endif
