/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to servers that Ctrl-C can end. */
#ifndef REPRISE_PYTHON_SERVER_CALL_H
#define REPRISE_PYTHON_SERVER_CALL_H

#include "core.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    CORE_CALL_AGAIN = 1,   /* the request may be made twice */
    CORE_CALL_PATIENT = 2, /* wait for a server that cannot be reached, as Reverb does */
};

/* A request. It is the first member of a struct on the heap that has its arguments and results.
 * A request is refcounted, since the caller or the thread that makes the call may be the last
 * to use it: when the interpreter ends, waiting threads disappear with their stacks. All
 * members but `peer` and `what` are private to server_call.c. */
typedef struct core_request {
    atomic_int refs;
    void (*clear)(void *request);
    core_call call;
    const rp_client *peer; /* set by the caller: a warning names its servers; NULL: none */
    const char *what;      /* set by the caller: what the call waits for; NULL: an answer */
    rp_wait wait;
    rp_error err;
    rp_status status;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over;                     /* guarded by lock, as is the next */
    char why[RP_ERROR_TEXT_BYTES]; /* what the call waits for; empty: not known */
} core_request;

/* Allocates a struct of `bytes` bytes, zeroed after its core_request. `clear` frees the members
 * of the struct when the last reference is dropped, on any thread and without the GIL. */
void *core_request_new(size_t bytes, void (*clear)(void *request));
void core_request_drop(core_request *request); /* called once, by the caller */

/* Sets what the call waits for, for the warning. Called by the call, without the GIL. */
void core_request_explain(core_request *request, const char *why);

/* Makes the call without the GIL, with the request as its argument. Returns -1 with an
 * exception if a signal handler raises one, or if the status is not RP_OK. The results of a
 * failed call are freed with the request. */
int core_call_server(core_call call, core_request *request, int flags, int64_t timeout_ms);

/* client.c: makes a call that must not be repeated, since its second run would fail where the
 * first one succeeded. So the wait for a server that cannot be reached comes before it. */
int core_client_call_there(core_client *self, core_call call, core_request *request,
                           int64_t timeout_ms);

#endif
