/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of an HTTP/2 connection in memory: our client, and our server with a few paths.
 * The bytes between them are split at random.
 *
 *   rp_test_ends e;
 *   rp_test_ends_init(&e, NULL, NULL);
 *   rp_test_ends_call *call = rp_test_ends_begin(&e, "/echo");
 *   rp_test_ends_say(&e, call, 1000);
 *   rp_call_half_close(call->call);
 *   rp_test_ends_carry(&e);
 *   assert_int_equal(call->messages, 1);
 *   ...
 *   rp_test_ends_deinit(&e);      // fails if a call has not ended or memory was not freed
 *
 * Paths:  /echo    sends back each message; ends when the client half-closes
 *         /count   then sends one message, with a byte for each that it has received
 *         /source  sends as many messages as the first one has bytes, of `source_bytes` each
 *         /hang    does nothing
 *         /fail    ends with RP_NOT_FOUND at once, with a text that is not ASCII
 *         /late    the same after a message
 *         /page    plain HTTP, with status `http_status`
 *
 * A message of n bytes is the first n of rp_test_ends_bytes; the receiver checks this. */
#ifndef RP_TEST_H2_ENDS_H
#define RP_TEST_H2_ENDS_H

#include "support/unit.h"
#include "util/rng.h"
#include "wire/h2/h2_inside.h"

enum { RP_TEST_ENDS_CALLS = 256, RP_TEST_ENDS_BIG = 20 << 20 };

#define RP_TEST_ENDS_TEXT "no tabl\xc3\xa9 \xe2\x80\x98x\xe2\x80\x99, 100 %\n"

typedef struct rp_test_ends_call {
    rp_call *call; /* NULL once closed */
    size_t messages, bytes, blocks, ends, closes, rooms;
    rp_status status;
    char text[512];
    size_t pause_after; /* messages; 0: never */
    size_t cancel_after;
} rp_test_ends_call;

typedef struct rp_test_ends {
    rp_test_oom client_oom, server_oom;
    rp_allocator client_alloc, server_alloc;
    rp_message_pool client_pool, server_pool;
    rp_h2 *client, *server;
    rp_status opened; /* the status of rp_h2_new_client() */
    bool client_alive, server_alive;
    rp_rng rng;
    bool is_whole;    /* bytes are not split */
    size_t in_place;  /* bytes that were read directly to their destination */
    size_t peak_held; /* the most bytes that the client held */

    rp_test_ends_call calls[RP_TEST_ENDS_CALLS];
    size_t call_count;

    /* of the server */
    rp_call *served[RP_TEST_ENDS_CALLS]; /* NULL once closed */
    size_t served_count, served_closes, served_messages, served_half_closes, served_faults;
    size_t nuisances[RP_NUISANCE_KINDS];
    rp_request_head head; /* of the last request, without its strings */
    char authorization[64];
    size_t source_bytes;
    int http_status;
} rp_test_ends;

extern uint8_t rp_test_ends_bytes[RP_TEST_ENDS_BIG];

/* The limits may be NULL. */
void rp_test_ends_init(rp_test_ends *e, const rp_h2_limits *client, const rp_h2_limits *server);
/* The same, but only `room` allocations of the client succeed. */
void rp_test_ends_try(rp_test_ends *e, size_t room);
void rp_test_ends_deinit(rp_test_ends *e);
void rp_test_ends_close_client(rp_test_ends *e);

rp_test_ends_call *rp_test_ends_begin(rp_test_ends *e, const char *path);
rp_test_ends_call *rp_test_ends_begin_with(rp_test_ends *e, const rp_call_head *head);
/* Sends a message of `size` bytes; false: no memory. */
bool rp_test_ends_say(rp_test_ends *e, rp_test_ends_call *call, size_t size);

/* Transfers bytes in both directions until there are none. */
void rp_test_ends_carry(rp_test_ends *e);
/* Transfer at most `most` bytes in one direction. Return their number. */
size_t rp_test_ends_to_server(rp_test_ends *e, size_t most);
size_t rp_test_ends_to_client(rp_test_ends *e, size_t most);

#endif
