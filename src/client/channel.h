/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to one server that is made when a call needs it and made again when it breaks,
 * and the calls on it.
 *
 * All of it runs on the client's loop thread. A call waits for the connection; when it ends,
 * for whatever reason, on_end is told and it can be begun again. Calls without a deadline wait
 * for ever for a server; retrying is the caller's business only for what it had sent. */
#ifndef RP_CLIENT_CHANNEL_H
#define RP_CLIENT_CHANNEL_H

#include "client/runtime.h"
#include "wire/h2.h"

typedef struct rp_channel rp_channel;
typedef struct rp_channel_call rp_channel_call;

/* Embed it; zero-initialise it and set path, class and deadline_ns. */
typedef struct rp_channel_call_class {
    void (*on_begin)(rp_channel_call *call); /* connected: messages can be sent now */
    void (*on_message)(rp_channel_call *call, const uint8_t *data, size_t size,
                       rp_block *block);    /* as in wire/h2.h */
    void (*on_room)(rp_channel_call *call); /* may be NULL */
    /* It is over and not open any more. RP_UNAVAILABLE: no connection, or it broke. `text` is
     * valid during the call. */
    void (*on_end)(rp_channel_call *call, rp_status status, const char *text);
} rp_channel_call_class;

struct rp_channel_call {
    const rp_channel_call_class *class;
    const char *path;
    int64_t deadline_ns; /* monotonic; RP_FOREVER. Sent as grpc-timeout, and kept here too */
    bool fails_fast;     /* ends with RP_UNAVAILABLE if the next attempt to connect fails */
    /* private */
    rp_channel *channel;
    rp_call *call; /* NULL: not begun on a connection */
    rp_channel_call *prev, *next;
    rp_timer timer;
};

/* Begins, or queues until there is a connection. Never calls back before it returns. */
void rp_channel_begin(rp_channel *channel, rp_channel_call *call);
/* Takes it back, without on_end. Nothing if it is over. */
void rp_channel_cancel(rp_channel_call *call);
/* After on_begin. A reply for the message comes from here. */
rp_reply *rp_channel_new_message(rp_channel *channel);          /* NULL: no memory */
void rp_channel_send(rp_channel_call *call, rp_reply *message); /* closed; takes it */
/* Gives back a message that will not be sent. NULL is fine. */
void rp_channel_drop_message(rp_channel *channel, rp_reply *message);
void rp_channel_half_close(rp_channel_call *call);
size_t rp_channel_queued_bytes(const rp_channel_call *call);
/* Stops and goes on with taking messages: flow control holds the peer up meanwhile. */
void rp_channel_pause(rp_channel_call *call);
void rp_channel_resume(rp_channel_call *call);

/* Why there is no connection, as a sentence; "" if there is one. */
void rp_channel_why(const rp_channel *channel, char *text, size_t size);
bool rp_channel_is_connected(const rp_channel *channel);
/* Whether it goes over a Unix socket; the descriptor of the connection, or -1. */
bool rp_channel_is_unix(const rp_channel *channel);

#endif
