/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of a channel, from the connected socket on: handshake, greeting, bytes in and
 * out, signs of life. channel.c decides when there is one and what is called on it.
 *
 *   handshake (TLS) -> greeting -> up -> over
 *
 * Private to channel.c and peer.c; on the loop's thread. */
#ifndef RP_CLIENT_CHANNEL_PEER_H
#define RP_CLIENT_CHANNEL_PEER_H

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
    RP_PEER_OVER, /* it is closed at the end of the turn */
} rp_peer_state;

typedef struct rp_peer rp_peer;
struct rp_peer {
    rp_channel *channel;
    rp_peer_state state;
    bool is_closing; /* its calls are being ended */
    rp_link link;
    rp_watch watch;
    rp_timer timer;
    rp_turn_end turn;
    rp_h2 *h2;
    rp_channel_call *calls;
    int64_t heard_ns, pinged_ns; /* 0: no ping is out */
    rp_peer *prev, *next;        /* of those that only finish their calls */
    char why[RP_CHANNEL_TEXT_BYTES];
};

typedef enum rp_channel_state {
    RP_CHANNEL_IDLE,
    RP_CHANNEL_CONNECTING, /* the connector runs */
    RP_CHANNEL_GREETING,   /* `current` is not up yet */
    RP_CHANNEL_UP,
    RP_CHANNEL_RESTING, /* until the timer says so */
} rp_channel_state;

struct rp_channel {
    rp_allocator alloc;
    rp_runtime *runtime;
    rp_loop *loop;
    rp_channel_options options; /* its strings are ours */
    rp_address address;
    char *strings; /* of the options, and the authority */
    size_t strings_bytes;
    const char *authority;
    rp_reply_pool pool;
    rp_block_pool *blocks; /* a reference */
    bool is_given_up;      /* the server will not come back */

    rp_channel_state state;
    rp_connector connector;
    rp_peer *current;          /* greeting or up */
    rp_peer *leaving;          /* those that only finish their calls */
    rp_channel_call *borrower; /* whose caller watches the connection; NULL: the loop does */
    rp_channel_call *waiting, *last_waiting;
    rp_timer timer; /* of RESTING */
    rp_turn_end turn;
    int64_t until_ns; /* of this attempt */
    int64_t pause_ns; /* before the next; 0: the last connection did well */
    uint64_t attempt;
    rp_rng rng;
    rp_share share;

    atomic_bool is_connected;
    rp_mutex mu; /* rank 85 */
    char why[RP_CHANNEL_TEXT_BYTES + 96] RP_GUARDED_BY(mu);
};

/* Takes the descriptor. NULL: no memory; then it is closed. */
rp_peer *rp_peer_new(rp_channel *channel, int fd, int64_t until_ns);
/* Ends its calls and frees it. With `politely`, says goodbye first. */
void rp_peer_free(rp_peer *peer, bool politely);
/* Something has to be written. */
void rp_peer_touch(rp_peer *peer);
/* Something has come. */
void rp_peer_read(rp_peer *peer);
/* Whether no more calls can begin on it, ever. */
bool rp_peer_is_leaving(const rp_peer *peer);
/* A call more has begun. */
void rp_peer_began(rp_peer *peer, rp_channel_call *call);

void rp_channel_on_up(rp_channel *channel);
/* The peer is over; the channel frees it. */
void rp_channel_on_over(rp_channel *channel, rp_peer *peer);
/* The server has answered something. */
void rp_channel_did_well(rp_channel *channel);
/* More calls may be able to begin. */
void rp_channel_touch(rp_channel *channel);
/* Takes a call out of its list: it is over. */
void rp_channel_detach(rp_channel_call *call);

#endif
