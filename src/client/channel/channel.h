/* SPDX-License-Identifier: Apache-2.0 */
/* A channel keeps a connection to one server and runs calls (RPCs) on it. A client has one
 * channel for each of its servers. The channel connects when a call needs a connection, and
 * reconnects after the connection breaks.
 *
 * Unless its comment says otherwise, every function must be called on the loop thread of the
 * client, or on a guest of the loop: another thread that runs the loop for a while
 * (net/loop.h). A call waits until there is a connection; if it has no deadline, it waits for
 * ever. When a call ends, on_end is called, and the caller is allowed to begin the call again.
 * The channel retries failed attempts to connect, but never retries a call that has begun. */
#ifndef RP_CLIENT_CHANNEL_CHANNEL_H
#define RP_CLIENT_CHANNEL_CHANNEL_H

#include "client/channel/runtime.h"
#include "client/channel/shared_memory.h"
#include "net/address.h"
#include "net/tls.h"
#include "reprise/wait.h"
#include "util/polling.h"
#include "wire/h2/h2.h"

typedef struct rp_channel rp_channel;
typedef struct rp_channel_call rp_channel_call;

/* The channel copies the struct and its strings. */
typedef struct rp_channel_options {
    const rp_allocator *alloc; /* NULL: the default */
    const char *text;          /* the address as the user wrote it */
    const rp_address *address;
    rp_tls *tls;               /* NULL: no TLS. The channel takes a reference */
    const char *server_name;   /* name that the server's certificate must have */
    const char *authorization; /* value of the HTTP header; NULL: none */
    /* Times in nanoseconds. 0 means the default: 30 s for ping_ns, 20 s for ping_timeout_ns,
     * and for the others the default of reprise/client.h. */
    int64_t connect_timeout_ns, retry_min_ns, retry_max_ns;
    int64_t ping_ns; /* if calls are open and no bytes have arrived for this time, a ping is
                        sent */
    int64_t ping_timeout_ns; /* if a ping has had no response for this time, the connection is
                                closed */
    size_t message_bytes;    /* largest message from the server; 0: 512 MiB */
    uint64_t seed;           /* of the random jitter in the backoff */
    bool shared_memory_off;  /* as in client.h */
} rp_channel_options;

/* Creates a channel, which the caller owns. Does no I/O. Any thread may call this. The runtime
 * must outlive the channel. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_channel_new(rp_runtime *runtime, const rp_channel_options *options,
                                      rp_channel **out, rp_error *err);
/* Ends all calls with RP_CANCELLED, closes the connection and frees the channel. NULL is fine.
 * Must not be called from a callback of one of the channel's calls. In the child of a fork,
 * must not be called for a channel of the parent. */
void rp_channel_free(rp_channel *channel);
/* Ends all calls of the channel with RP_CANCELLED, and also those that begin later. Callers
 * must not retry them. */
void rp_channel_give_up(rp_channel *channel);
bool rp_channel_is_given_up(const rp_channel *channel);

/* Callbacks of a call. */
typedef struct rp_channel_call_class {
    void (*on_begin)(rp_channel_call *call); /* there is a connection: messages can be sent */
    void (*on_message)(rp_channel_call *call, const uint8_t *data, size_t size,
                       rp_block *block); /* as in wire/h2/h2.h */
    /* Queued messages were written to the connection, and few bytes are left in the queue, so
     * the caller can send more. May be NULL. */
    void (*on_room)(rp_channel_call *call);
    /* The call has ended. RP_UNAVAILABLE means that there was no connection, or that it broke.
     * `text` is valid during the callback. */
    void (*on_end)(rp_channel_call *call, rp_status status, const char *text);
} rp_channel_call_class;

/* A call. The caller embeds the struct in its own, zero-initialises it, and sets the fields
 * before "private" as needed. */
struct rp_channel_call {
    const rp_channel_call_class *class;
    const char *path;
    int64_t deadline_ns;   /* monotonic, or RP_FOREVER. Also sent as grpc-timeout */
    int64_t connect_by_ns; /* if the call has no connection at this monotonic time, it ends with
                              RP_DEADLINE; 0: no bound */
    bool fails_fast;       /* the call ends with RP_UNAVAILABLE if the next attempt to connect
                              fails */
    bool skips_away;       /* the call ends with RP_UNAVAILABLE at once if
                              rp_channel_is_away() */
    /* private */
    rp_channel *channel;  /* NULL: the call has ended or not begun */
    struct rp_peer *peer; /* the connection; NULL: the call waits for one */
    rp_call *call;        /* the call on that connection */
    rp_channel_call *prev, *next;
    rp_timer timer;
    uint64_t attempt; /* number of the attempt to connect that the call waits for */
    bool starved;     /* memory ran out for its timer: the call will end with RP_NO_RESOURCE */
    bool is_hurried;  /* its timer was set by rp_channel_connect_by() */
};

/* Begins a call, or queues it until there is a connection. Callbacks run only after this
 * function has returned. */
void rp_channel_begin(rp_channel *channel, rp_channel_call *call);
/* Limits the time for which a call with a deadline waits for a connection. If the call has no
 * connection at `until_ns`, it ends with RP_DEADLINE, and rp_channel_is_away() is true until
 * the server can be reached. Does nothing if the call has a connection or has ended. */
void rp_channel_connect_by(rp_channel_call *call, int64_t until_ns);
/* Cancels a call without on_end. Does nothing if the call has ended. */
void rp_channel_cancel(rp_channel_call *call);
/* Returns an empty message, or NULL if memory runs out. */
rp_message *rp_channel_new_message(rp_channel *channel);
/* Sends a closed message and takes ownership of it. The caller must wait for on_begin first. */
void rp_channel_send(rp_channel_call *call, rp_message *message);
/* Releases a message that will not be sent. NULL is fine. */
void rp_channel_drop_message(rp_channel *channel, rp_message *message);
/* Ends the request: no more messages will be sent. */
void rp_channel_half_close(rp_channel_call *call);
/* Returns the number of bytes that were sent but not written to the connection yet. */
size_t rp_channel_queued_bytes(const rp_channel_call *call);
/* Stop and resume receiving messages. While the call is paused, flow control makes the server
 * wait. */
void rp_channel_pause(rp_channel_call *call);
void rp_channel_resume(rp_channel_call *call);

/* Lends the descriptor of the call's connection to a thread that waits for the call, and
 * returns the descriptor. The loop does not watch the descriptor until the call ends or
 * rp_channel_give_back() is called. If this call has already borrowed the descriptor, returns
 * it again. Returns -1 if the call has not begun or has ended, if another call has borrowed the
 * descriptor, or if the connection uses TLS. */
int rp_channel_borrow(rp_channel_call *call);
bool rp_channel_borrows(const rp_channel_call *call);
/* Returns the object that decides whether a thread that waits for a response polls the
 * descriptor before it sleeps (util/polling.h). Any thread. */
rp_polling *rp_channel_polling(rp_channel *channel);
/* Reads from the connection, and handles the bytes for all calls on the connection. Does
 * nothing if `call` has not borrowed the descriptor. */
void rp_channel_read(rp_channel_call *call);
/* Ends the loan: makes the loop watch the descriptor again. */
void rp_channel_give_back(rp_channel_call *call);

/* Returns the address as the user wrote it, valid as long as the channel. */
const char *rp_channel_address(const rp_channel *channel);
/* Writes to `text` why there is no connection, or "" if there is one. Any thread. */
void rp_channel_why(const rp_channel *channel, char *text, size_t size);
bool rp_channel_is_connected(const rp_channel *channel); /* any thread */
/* Returns when bytes of the server last arrived, or 0. Any thread. */
int64_t rp_channel_heard_ns(const rp_channel *channel);
/* Counts a call to several servers that has left out this server because it could not be
 * reached. Any thread. */
void rp_channel_count_left_out(rp_channel *channel);
uint64_t rp_channel_left_out(const rp_channel *channel); /* returns the number of these calls;
                                                            any thread */
/* Returns true if the server is away: there is no connection, and the last attempt to connect
 * has failed. The next call makes the channel try again. */
bool rp_channel_is_away(const rp_channel *channel);
/* Returns true if the TLS handshake of the last attempt to connect failed and no attempt has
 * ever succeeded. Further attempts fail until certificates or options are changed. Any
 * thread. */
bool rp_channel_is_refused(const rp_channel *channel);
bool rp_channel_is_unix(const rp_channel *channel); /* address is a Unix socket; any thread */
/* Returns the descriptor of the connection, or -1 if there is none. */
int rp_channel_fd(const rp_channel *channel);
/* Returns the object for memory shared with the server (shared_memory.h), valid as long as the
 * channel. Returns NULL if this channel cannot share memory. */
rp_share *rp_channel_share(rp_channel *channel);

#endif
