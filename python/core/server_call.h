/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to servers, which Ctrl-C ends. */
#ifndef REPRISE_PYTHON_SERVER_CALL_H
#define REPRISE_PYTHON_SERVER_CALL_H

#include "core.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    CORE_CALL_AGAIN = 1,   /* it may be made twice */
    CORE_CALL_PATIENT = 2, /* a server that is not there is waited for, as Reverb does */
};

/* What a call is about, and what it makes: the first member of a struct on the heap. Of the
 * caller and the thread that makes the call, either may be the last to need it: threads that
 * wait are gone, and their stacks with them, once the interpreter ends. All of it is private
 * to server_call.c. */
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

/* A struct of that size, zero behind its request; NULL with an exception. `clear` frees what it
 * then holds, on any thread and without the GIL. */
void *core_request_new(size_t bytes, void (*clear)(void *request));
void core_request_drop(core_request *request); /* once, by the caller */

/* Makes a call, whose argument is the request, without the GIL. 0, or -1 with an exception, by
 * a signal or by its status. What a call has made although it failed goes with the request. */
int core_call_server(core_call call, core_request *request, int flags, int64_t timeout_ms);

#endif
