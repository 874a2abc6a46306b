/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to servers, which Ctrl-C ends. */
#ifndef REPRISE_PYTHON_SERVER_CALL_H
#define REPRISE_PYTHON_SERVER_CALL_H

#include "core.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    CORE_CALL_AGAIN = 1,   /* the request may be made twice */
    CORE_CALL_PATIENT = 2, /* waits for a server that cannot be reached, as Reverb does */
};

/* A request: the first member of a struct on the heap with its arguments and results. It is
 * refcounted, since the caller or the thread that makes the call may be the last to use it:
 * when the interpreter ends, threads that wait disappear with their stacks. All members are
 * private to server_call.c. */
typedef struct core_request {
    atomic_int refs;
    void (*clear)(void *request);
    core_call call;
    rp_wait wait;
    rp_error err;
    rp_status status;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over; /* guarded by lock */
} core_request;

/* Allocates a struct of that size, zeroed behind its core_request. `clear` frees its members at
 * the end, on any thread and without the GIL. */
void *core_request_new(size_t bytes, void (*clear)(void *request));
void core_request_drop(core_request *request); /* called once, by the caller */

/* Makes the call, with the request as its argument, without the GIL. -1 with an exception if a
 * signal handler raises or the status is not RP_OK. Results of a failed call are freed with the
 * request. */
int core_call_server(core_call call, core_request *request, int flags, int64_t timeout_ms);

#endif
