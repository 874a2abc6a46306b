/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to one server that is made when a call needs it and made again when it breaks,
 * and the calls on it.
 *
 * All of it runs on the client's loop thread (or on that of a guest, net/loop.h), but for what
 * says otherwise. A call waits for the connection; when it ends, for whatever reason, on_end is
 * told and it can be begun again. Calls without a deadline wait for ever for a server; retrying
 * is the caller's business only for what it had sent. */
#ifndef RP_CLIENT_CHANNEL_CHANNEL_H
#define RP_CLIENT_CHANNEL_CHANNEL_H

#include "client/channel/runtime.h"
#include "client/channel/shared_memory.h"
#include "net/address.h"
#include "net/tls.h"
#include "reprise/wait.h"
#include "wire/h2/h2.h"

typedef struct rp_channel rp_channel;
typedef struct rp_channel_call rp_channel_call;

typedef struct rp_channel_options {
    const rp_allocator *alloc; /* NULL: the default. The struct is copied, as all strings are */
    const char *text;          /* the address as a person wrote it */
    const rp_address *address;
    rp_tls *tls;               /* NULL: plain; it takes a reference of its own */
    const char *server_name;   /* in the server's certificate */
    const char *authorization; /* the whole value of the header, or NULL */
    /* Nanoseconds; 0: what client.h says, and 30 s and 20 s. */
    int64_t connect_timeout_ns, retry_min_ns, retry_max_ns;
    int64_t ping_ns; /* a silent peer is asked for a sign of life while calls are open */
    int64_t ping_timeout_ns; /* and given up after that */
    size_t message_bytes;    /* 0: 512 MiB */
    uint64_t seed;           /* of the pauses */
    bool shared_memory_off;  /* as in client.h */
} rp_channel_options;

/* Any thread; no I/O. RP_NO_RESOURCE. The runtime must outlive it. Returns owned. */
RP_NODISCARD rp_status rp_channel_new(rp_runtime *runtime, const rp_channel_options *options,
                                      rp_channel **out, rp_error *err);
/* Ends all calls with RP_CANCELLED, says goodbye and frees it. NULL is fine. Not from within a
 * callback of its calls. In the child of a fork the parent's channels are left alone. */
void rp_channel_free(rp_channel *channel);
/* The server will not come back: ends all calls with RP_CANCELLED, and those that begin later,
 * which must then not be tried again. */
void rp_channel_give_up(rp_channel *channel);
bool rp_channel_is_given_up(const rp_channel *channel);

/* Embed it; zero-initialise it and set path, class and deadline_ns. */
typedef struct rp_channel_call_class {
    void (*on_begin)(rp_channel_call *call); /* connected: messages can be sent now */
    void (*on_message)(rp_channel_call *call, const uint8_t *data, size_t size,
                       rp_block *block);    /* as in wire/h2/h2.h */
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
    rp_channel *channel;  /* NULL: over, or not begun */
    struct rp_peer *peer; /* the connection, if there is one, */
    rp_call *call;        /* and the call on it */
    rp_channel_call *prev, *next;
    rp_timer timer;
    uint64_t attempt; /* to connect, that it waits for */
    bool starved;     /* there was no memory for the timer */
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

/* Has whoever waits for the call watch its connection's descriptor instead of the loop, which
 * is not woken for what comes there. -1: it has not begun, it is over, or the connection has
 * been borrowed by another. Ends with the call at the latest. */
int rp_channel_borrow(rp_channel_call *call);
bool rp_channel_borrows(const rp_channel_call *call);
/* Reads what has come, of all calls. Nothing if it has not borrowed. */
void rp_channel_read(rp_channel_call *call);
void rp_channel_give_back(rp_channel_call *call);

/* Why there is no connection, as a sentence; "" if there is one. This and the next: any thread.
 */
void rp_channel_why(const rp_channel *channel, char *text, size_t size);
bool rp_channel_is_connected(const rp_channel *channel);
/* Whether it goes over a Unix socket (any thread); the descriptor of the connection, or -1. */
bool rp_channel_is_unix(const rp_channel *channel);
int rp_channel_fd(const rp_channel *channel);
/* The way to memory shared with the server; NULL: there is none. Valid as long as the channel.
 */
rp_share *rp_channel_share(rp_channel *channel);

#endif
