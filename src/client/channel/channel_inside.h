/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of a channel (channel.h) and its internal functions, which only two files use:
 *
 *   channel_calls.c   calls that wait for a connection, when to connect, backoff
 *   channel_peer.c    one connection: handshake, greeting, bytes in and out, pings
 *
 * A connection (rp_peer) passes through these states:
 *
 *   handshake (TLS) -> greeting -> up -> over
 *
 * In the state "greeting", the connection waits for the server's first HTTP/2 settings. All
 * functions must be called on the loop thread.
 *
 * Invariants, between two callbacks of the loop:
 *   C1  if the channel's state is RP_CHANNEL_GREETING, the state of `current` is HANDSHAKE or
 *       GREETING; if it is RP_CHANNEL_UP, the state of `current` is UP or OVER. In all other
 *       states of the channel, `current` is NULL. `current` is not in the list `leaving`;
 *   C2  a call of the channel is in exactly one list: `waiting` if its peer is NULL, otherwise
 *       the calls of its peer;
 *   C3 the lists of C2 are doubly linked, and last_waiting is the last call of `waiting`;
 *   C4  `borrower` is NULL or a call with a peer. */
#ifndef RP_CLIENT_CHANNEL_CHANNEL_INSIDE_H
#define RP_CLIENT_CHANNEL_CHANNEL_INSIDE_H

#include <stdatomic.h>

#include "client/channel/channel.h"
#include "net/connector.h"
#include "net/link.h"
#include "util/mutex.h"
#include "util/rng.h"

enum { RP_CHANNEL_TEXT_BYTES = 200 };

typedef enum rp_peer_state {
    RP_PEER_HANDSHAKE,
    RP_PEER_GREETING,
    RP_PEER_UP,
    RP_PEER_OVER, /* the channel closes the connection at the end of this turn of the loop */
} rp_peer_state;

/* A connection. */
typedef struct rp_peer rp_peer;
struct rp_peer {
    rp_channel *channel;
    rp_peer_state state;
    bool is_closing; /* rp_peer_free() is running and ends the calls */
    bool is_refused; /* the TLS handshake has failed */
    rp_link link;
    rp_watch watch;
    rp_timer timer;
    rp_at_turn_end turn;
    rp_h2 *h2;
    rp_channel_call *calls;
    int64_t heard_ns;     /* when bytes last arrived */
    int64_t pinged_ns;    /* when a ping was sent that has no response yet; 0: none */
    rp_peer *prev, *next; /* in channel->leaving */
    char why[RP_CHANNEL_TEXT_BYTES]; /* why the connection ended */
};

typedef enum rp_channel_state {
    RP_CHANNEL_IDLE,
    RP_CHANNEL_CONNECTING, /* the connector is opening a connection */
    RP_CHANNEL_GREETING,   /* `current` is not up yet */
    RP_CHANNEL_UP,
    RP_CHANNEL_RESTING, /* backoff: waits until the timer is due */
} rp_channel_state;

struct rp_channel {
    rp_allocator alloc;
    rp_runtime *runtime;
    rp_loop *loop;
    rp_channel_options options; /* with copies of the strings */
    rp_address address;
    char *strings; /* copies of the options' strings, and the authority */
    size_t strings_bytes;
    const char *authority;
    rp_message_pool pool;
    rp_block_pool *blocks; /* a reference */
    bool is_given_up;      /* all calls end with RP_CANCELLED */

    rp_channel_state state;
    rp_connector connector;
    rp_peer *current; /* the connection for new calls; NULL: none */
    rp_peer *leaving; /* list of connections that finish their calls and accept no new ones */
    rp_channel_call *borrower; /* the call that has borrowed the descriptor; NULL: none */
    rp_channel_call *waiting, *last_waiting;
    rp_timer timer; /* ends the state RESTING */
    rp_at_turn_end turn;
    int64_t until_ns; /* deadline of this attempt to connect */
    int64_t pause_ns; /* last backoff, before the jitter; 0: the server has responded to a call
                         since the last backoff */
    uint64_t attempt; /* number of the current or next attempt to connect */
    bool has_failed;  /* the last attempt to connect has failed */
    bool is_wanted;   /* the channel connects even if no call waits, so that a later call finds
                         a connection */
    rp_rng rng;
    rp_share share;

    bool has_been_up; /* an attempt to connect has succeeded */
    atomic_bool is_connected;
    atomic_int_fast64_t heard_ns;  /* rp_channel_heard_ns() */
    rp_polling polling;            /* rp_channel_polling() */
    atomic_uint_fast64_t left_out; /* rp_channel_count_left_out() */
    atomic_bool is_refused;        /* rp_channel_is_refused() */
    rp_mutex mu;                   /* lock rank 85 (util/mutex.h) */
    char why[RP_CHANNEL_TEXT_BYTES + 96] RP_GUARDED_BY(mu);
};

/* Creates a connection from a connected descriptor, which it takes over. If memory runs out,
 * closes the descriptor and returns NULL. The handshake must be done by `until_ns`. */
rp_peer *rp_peer_new(rp_channel *channel, int fd, int64_t until_ns);
/* Ends the calls of a connection and frees it. If `politely` is true, first shuts down the
 * sending side of the connection. */
void rp_peer_free(rp_peer *peer, bool politely);
/* Makes the connection write its bytes and update the events that it watches for, at the end of
 * this turn (one round of callbacks) of the loop. */
void rp_peer_touch(rp_peer *peer);
/* Reads from the descriptor and handles the bytes. */
void rp_peer_read(rp_peer *peer);
/* Returns true if no more calls can begin on the connection. */
bool rp_peer_is_leaving(const rp_peer *peer);
/* Adds a call that has begun to the calls of the connection. */
void rp_peer_began(rp_peer *peer, rp_channel_call *call);

/* Called when the current connection is ready for calls. */
void rp_channel_on_up(rp_channel *channel);
/* Called when a connection has reached the state OVER. Frees the connection. */
void rp_channel_on_over(rp_channel *channel, rp_peer *peer);
/* Called when the server has responded to a call. Resets the backoff. */
void rp_channel_did_well(rp_channel *channel);
/* At the end of this turn of the loop, makes the channel begin the calls that wait, or
 * connect. */
void rp_channel_touch(rp_channel *channel);
/* Removes a call that has ended from its list. */
void rp_channel_detach(rp_channel_call *call);

/* For assertions: returns false if the channel violates invariant C1 (the states of `current`
 * are not checked), C3 or C4. */
bool rp_channel_is_valid(const rp_channel *channel);

#endif
