/* SPDX-License-Identifier: Apache-2.0 */
/* A small gRPC client: unary calls over one plain connection to loopback, any number at once.
 *
 * It reads and writes only while the test waits for a call. So a test that does not wait is a
 * peer that does not read. Waits are bounded; every failure fails the test. */
#ifndef RP_TEST_CALLER_H
#define RP_TEST_CALLER_H

#include "util/buf.h"

enum { RP_TEST_CALLS = 64, RP_TEST_TEXT_BYTES = 512 };

typedef struct rp_test_caller rp_test_caller;

rp_test_caller *rp_test_caller_open(int port);
/* Closes the connection with its open calls. */
void rp_test_caller_close(rp_test_caller *caller);

/* How a call ended. */
typedef struct rp_test_outcome {
    bool is_over;
    int status; /* gRPC's; -1 if there was none */
    char text[RP_TEST_TEXT_BYTES];
    rp_buf message; /* the first response, without its prefix; valid as long as the caller */
} rp_test_outcome;

/* Starts a call of a method, "/reprise.v1.Replay/Peek", with `size` bytes of request, and ends
 * our side of it. `timeout` as in grpc-timeout, or NULL. Returns its number, used once. */
size_t rp_test_call_start(rp_test_caller *caller, const char *method, const void *request,
                          size_t size, const char *timeout);
/* Start a call without a message, and send a request message; `is_last` ends our side of it. */
size_t rp_test_call_open(rp_test_caller *caller, const char *method);
void rp_test_call_send(rp_test_caller *caller, size_t call, const void *request, size_t size,
                       bool is_last);
/* Waits until the call is over. Returns borrowed. */
const rp_test_outcome *rp_test_call_wait(rp_test_caller *caller, size_t call);
/* Reads and writes for `ms` milliseconds. Returns true if the call is over then. */
bool rp_test_call_is_over(rp_test_caller *caller, size_t call, int ms);
/* Cancels the call. */
void rp_test_call_cancel(rp_test_caller *caller, size_t call);

/* Starts a call and waits for it. */
const rp_test_outcome *rp_test_call(rp_test_caller *caller, const char *method,
                                    const void *request, size_t size);

#endif
