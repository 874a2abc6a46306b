/* SPDX-License-Identifier: Apache-2.0 */
/* Servers with a full half of queued_bytes: that of messages, or that of responses. */
#ifndef RP_TEST_FULL_QUEUE_H
#define RP_TEST_FULL_QUEUE_H

#include "server/core/server_state.h"
#include "support/live_server.h"

enum {
    RP_TEST_QUEUE_BYTES = 16 << 20,
    /* The bytes of a side from which on a connection gets only its share. */
    RP_TEST_FULL_SIDE = RP_TEST_QUEUE_BYTES / 2 - RP_TEST_QUEUE_BYTES / 8,
    RP_TEST_FILLERS = 8, /* connections that fill the side of messages */
    /* Steps of a client, a millisecond or more each, after which a test considers the server
     * hung. */
    RP_TEST_STEPS = 120000,
};

/* Starts a server with queued_bytes RP_TEST_QUEUE_BYTES, two loops and no pings. */
void rp_test_start_queue(rp_test_live *live, int64_t grace_ms, int64_t stall_ms);

/* Return the server's count of queued bytes, and of refusals. */
uint64_t rp_test_queued(const rp_test_live *live);
uint64_t rp_test_refused(const rp_test_live *live, rp_refusal why);

/* Steps each client that is not NULL; none of them is closed. */
void rp_test_step_all(rp_test_client **clients, int count);
/* Steps them until `bytes` bytes or more are queued. The count has to stay for some steps: a
 * sample that goes from its table to its connection is counted twice for a moment. */
void rp_test_await_queued(const rp_test_live *live, rp_test_client **clients, int count,
                          uint64_t bytes);
void rp_test_free_all(rp_test_client **clients, int count);

/* Returns how many messages each filler sends: one that waits for the table, and others after
 * it.
 */
size_t rp_test_fills(void);

/* Connects RP_TEST_FILLERS writers. Their inserts wait for the table "loans", which takes one
 * item at a time, and their further messages fill the side of messages. */
void rp_test_fill_with_messages(rp_test_live *live, rp_test_client **writers,
                                rp_test_stream **calls, size_t item_bytes);
/* Connects one reader that requests samples of the table "replay" and reads no more than
 * `window` bytes of them. */
rp_test_client *rp_test_connect_reader(rp_test_live *live, rp_test_stream **call,
                                       uint32_t window);
/* Connects `count` such readers, and waits until `bytes` bytes of responses are queued. */
void rp_test_fill_with_answers(rp_test_live *live, rp_test_client **readers,
                               rp_test_stream **calls, int count, uint32_t window,
                               uint64_t bytes);

#endif
