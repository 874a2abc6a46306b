/* SPDX-License-Identifier: Apache-2.0 */
/* A channel keeps a connection to one server and runs calls on it. It connects when a call
 * needs the connection and reconnects after the connection breaks.
 *
 * Every function runs on the loop thread of the client (or on a guest of the loop, which is a
 * thread that has entered it: net/loop.h) unless its comment says otherwise. A call waits until
 * there is a connection; without a deadline it waits for ever. When a call ends, on_end is
 * called, and the caller may begin the call again. The channel retries to connect, but never
 * retries a call that has begun. */
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
    const rp_allocator *alloc; /* NULL: the default. The struct and all strings are copied */
    const char *text;          /* the address as the user wrote it */
    const rp_address *address;
    rp_tls *tls;               /* NULL: plain. The channel takes a reference */
    const char *server_name;   /* expected in the server's certificate */
    const char *authorization; /* value of the header, or NULL */
    /* Times in nanoseconds. 0: the default of client.h; 30 s for ping_ns, 20 s for
     * ping_timeout_ns. */
    int64_t connect_timeout_ns, retry_min_ns, retry_max_ns;
    int64_t ping_ns;         /* while calls are open, a peer silent for so long gets a ping */
    int64_t ping_timeout_ns; /* without a response for so long, the connection is closed */
    size_t message_bytes;    /* largest message from the server; 0: 512 MiB */
    uint64_t seed;           /* of the backoff's jitter */
    bool shared_memory_off;  /* as in client.h */
} rp_channel_options;

/* Creates a channel. Does no I/O. Any thread. The runtime must outlive the channel. Returns
 * owned.
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_channel_new(rp_runtime *runtime, const rp_channel_options *options,
                                      rp_channel **out, rp_error *err);
/* Ends all calls with RP_CANCELLED, closes the connection and frees the channel. NULL is fine.
 * Must not be called from a callback of its calls, nor in the child of a fork for a channel of
 * the parent. */
void rp_channel_free(rp_channel *channel);
/* Ends all calls with RP_CANCELLED, now and whenever one begins later. Callers must not retry
 * them. */
void rp_channel_give_up(rp_channel *channel);
bool rp_channel_is_given_up(const rp_channel *channel);

/* Callbacks of a call. */
typedef struct rp_channel_call_class {
    void (*on_begin)(rp_channel_call *call); /* connected: messages can be sent now */
    void (*on_message)(rp_channel_call *call, const uint8_t *data, size_t size,
                       rp_block *block); /* as in wire/h2/h2.h */
    /* Messages were written, and few queued bytes are left: send more. May be NULL. */
    void (*on_room)(rp_channel_call *call);
    /* The call has ended. RP_UNAVAILABLE: there was no connection, or it broke. `text` is valid
     * during the callback. */
    void (*on_end)(rp_channel_call *call, rp_status status, const char *text);
} rp_channel_call_class;

/* Embed it, zero-initialise it and set class, path and deadline_ns. */
struct rp_channel_call {
    const rp_channel_call_class *class;
    const char *path;
    int64_t deadline_ns; /* monotonic, or RP_FOREVER. Also sent as grpc-timeout */
    bool fails_fast;     /* ends with RP_UNAVAILABLE if the next attempt to connect fails */
    bool skips_away;     /* ends with RP_UNAVAILABLE at once if rp_channel_is_away() */
    /* private */
    rp_channel *channel;  /* NULL: ended, or not begun */
    struct rp_peer *peer; /* the connection; NULL: the call waits for one */
    rp_call *call;        /* the call on that connection */
    rp_channel_call *prev, *next;
    rp_timer timer;
    uint64_t attempt; /* number of the attempt to connect that the call waits for */
    bool starved;     /* there was no memory for its timer: ends with RP_NO_RESOURCE */
    bool is_hurried;  /* its timer is that of rp_channel_connect_by() */
};

/* Begins a call, or queues it until there is a connection. No callback runs before it returns.
 */
void rp_channel_begin(rp_channel *channel, rp_channel_call *call);
/* Gives a call with a deadline less time to wait for a connection: without one at `until_ns` it
 * ends with RP_DEADLINE, and the server is away (rp_channel_is_away()) until it can be reached.
 * Does nothing if the call has a connection or has ended. */
void rp_channel_connect_by(rp_channel_call *call, int64_t until_ns);
/* Cancels a call without on_end. Does nothing if the call has ended. */
void rp_channel_cancel(rp_channel_call *call);
/* Returns an empty message, or NULL if there is no memory. */
rp_message *rp_channel_new_message(rp_channel *channel);
/* Sends a message that is closed, and takes ownership of it. Call it after on_begin. */
void rp_channel_send(rp_channel_call *call, rp_message *message);
/* Releases a message that will not be sent. NULL is fine. */
void rp_channel_drop_message(rp_channel *channel, rp_message *message);
void rp_channel_half_close(rp_channel_call *call);
size_t rp_channel_queued_bytes(const rp_channel_call *call);
/* Stops or resumes receiving. Flow control makes the server wait meanwhile. */
void rp_channel_pause(rp_channel_call *call);
void rp_channel_resume(rp_channel_call *call);

/* Hands the descriptor of the call's connection to the thread that waits for the call; the loop
 * stops watching it. Returns -1 if the call has not begun or has ended, if another call has the
 * descriptor, or under TLS. When the call ends, the descriptor goes back to the loop. */
int rp_channel_borrow(rp_channel_call *call);
bool rp_channel_borrows(const rp_channel_call *call);
/* Reads from the connection, for all of its calls. Does nothing if the call has not borrowed
 * the descriptor. */
void rp_channel_read(rp_channel_call *call);
/* Makes the loop watch the descriptor again. */
void rp_channel_give_back(rp_channel_call *call);

/* The address as the user wrote it. Valid as long as the channel. */
const char *rp_channel_address(const rp_channel *channel);
/* Writes the reason why there is no connection to `text`, "" if there is one. Any thread. */
void rp_channel_why(const rp_channel *channel, char *text, size_t size);
bool rp_channel_is_connected(const rp_channel *channel); /* any thread */
/* Counts a call to several shards that has left out this one. Any thread. */
void rp_channel_count_left_out(rp_channel *channel);
uint64_t rp_channel_left_out(const rp_channel *channel); /* how many there were; any thread */
/* Returns true if there is no connection and the last attempt to connect has failed. A call
 * makes the channel attempt it again. */
bool rp_channel_is_away(const rp_channel *channel);
/* Returns true if the TLS handshake of the last attempt failed, and no attempt has succeeded:
 * the next ones fail as well, until someone changes certificates or options. Any thread. */
bool rp_channel_is_refused(const rp_channel *channel);
bool rp_channel_is_unix(const rp_channel *channel); /* any thread */
/* Returns the descriptor of the connection, or -1. */
int rp_channel_fd(const rp_channel *channel);
/* Returns the memory shared with the server, or NULL if the channel cannot have any. Valid as
 * long as the channel. */
rp_share *rp_channel_share(rp_channel *channel);

#endif
