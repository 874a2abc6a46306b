/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of an HTTP/2 connection in memory: an rp_h2, whose callbacks are recorded, and a
 * client.
 *
 *   rp_test_pair p;
 *   rp_test_pair_init(&p, NULL, NULL);
 *   rp_test_stream *call = rp_test_client_open(p.client, "/a");
 *   rp_test_pair_carry(&p);
 *   assert_int_equal(p.request_count, 1);
 *   ...
 *   rp_test_pair_deinit(&p);      // fails if memory was not freed */
#ifndef RP_TEST_H2_PAIR_H
#define RP_TEST_H2_PAIR_H

#include "support/h2_client.h"
#include "support/unit.h"
#include "wire/h2/h2_inside.h"

enum { RP_TEST_PAIR_CALLS = 64 };

typedef struct rp_test_pair rp_test_pair;

/* A message as it was delivered. */
typedef struct rp_test_message {
    size_t call; /* the number of its call */
    uint8_t *data;
    size_t size;
    bool had_block;
} rp_test_message;

struct rp_test_pair {
    rp_test_oom oom;
    rp_allocator alloc;
    rp_message_pool pool;
    rp_h2 *h2;
    rp_test_client *client;
    rp_status opened; /* the status of rp_h2_new() */

    /* how many bytes are transferred at a time; 0: all */
    size_t in_bytes, out_bytes, out_parts;
    bool alive;      /* the connection accepts bytes */
    bool no_place;   /* bytes are never written directly to their destination */
    size_t in_place; /* bytes that were written directly to their destination */

    /* the recorded callbacks; calls are numbered in order of arrival */
    rp_call *calls[RP_TEST_PAIR_CALLS]; /* NULL once closed */
    size_t request_count, half_close_count, room_count, close_count;
    size_t nuisances[RP_NUISANCE_KINDS], faults[RP_FAULT_MEMORY + 1];
    size_t most_nuisances; /* after this many the handler ends the connection; 0: never */
    rp_request_head head;  /* of the last request, without its strings */
    char path[64], method[16], authorization[64], content_type[64], encoding[32];
    rp_status fault_status;
    rp_test_message *messages;
    size_t message_count, message_capacity;

    /* further actions of the handler; may be NULL */
    void (*on_request)(rp_test_pair *p, rp_call *call);
    bool (*may_deliver)(rp_test_pair *p, rp_call *call, size_t size);
    void (*on_message)(rp_test_pair *p, rp_call *call, const uint8_t *data, size_t size,
                       rp_block *block);
    void (*on_half_close)(rp_test_pair *p, rp_call *call);
    void (*on_room)(rp_test_pair *p, rp_call *call);
    void (*on_close)(rp_test_pair *p, rp_call *call);
    void *user;
};

/* Returns limits that no test reaches. */
rp_h2_limits rp_test_h2_limits(void);

/* Makes the connection. Limits and options may be NULL. The handler only records. */
void rp_test_pair_init(rp_test_pair *p, const rp_h2_limits *limits,
                       const rp_test_client_options *options);
/* The same, but only `room` allocations succeed. p->opened says whether there is a connection.
 */
void rp_test_pair_try(rp_test_pair *p, const rp_h2_limits *limits, size_t room);
void rp_test_pair_deinit(rp_test_pair *p);
/* Frees the connection only. */
void rp_test_pair_close(rp_test_pair *p);

/* Transfers bytes in both directions until there are none. */
void rp_test_pair_carry(rp_test_pair *p);
/* Transfers bytes to the connection only. */
void rp_test_pair_carry_in(rp_test_pair *p);
void rp_test_pair_carry_out(rp_test_pair *p);
/* Gives these bytes to the connection, as they are. */
void rp_test_pair_feed(rp_test_pair *p, const void *data, size_t size);
/* Writes up to `size` bytes of the connection's output to the client. Returns their number. */
size_t rp_test_pair_write(rp_test_pair *p, size_t size);

/* The number of a call. */
size_t rp_test_pair_number(const rp_test_pair *p, const rp_call *call);

/* Makes a response with these bytes, copied or borrowed (`held` NULL: nothing is held). */
rp_message *rp_test_pair_reply(rp_test_pair *p, const void *data, size_t size,
                               rp_trajectory *held);
void rp_test_pair_say(rp_test_pair *p, rp_call *call, const void *data, size_t size);

#endif
