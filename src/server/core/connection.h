/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of a server: connection.c. It belongs to the thread of its worker. */
#ifndef RP_SERVER_CORE_CONNECTION_H
#define RP_SERVER_CORE_CONNECTION_H

#include "net/link.h"
#include "net/loop.h"
#include "server/auth/gate.h"
#include "server/bounds/abuse.h"
#include "server/bounds/intake.h"
#include "server/bounds/refusal.h"
#include "server/core/gathering.h"
#include "server/core/queue_budget.h"
#include "wire/h2/h2.h"

enum { RP_PEER_BYTES = 64 };

typedef struct rp_worker rp_worker;
typedef struct rp_connection rp_connection;
typedef struct rp_task rp_task;
typedef struct rp_lease_link rp_lease_link;

typedef enum rp_connection_state {
    RP_CONNECTION_HANDSHAKE, /* TLS */
    RP_CONNECTION_SNIFF,     /* HTTP/2 or HTTP/1.1? */
    RP_CONNECTION_H2,
    RP_CONNECTION_LEASE,   /* of a client of this host, which says what it needs no more */
    RP_CONNECTION_CLOSING, /* what is left is written, nothing is read */
    RP_CONNECTION_CLOSED,  /* its calls are being ended: closing.h */
} rp_connection_state;

struct rp_connection {
    rp_watch watch;
    rp_timer timer; /* the next time to look after it */
    rp_timer rest;  /* armed while it is not read from, so that messages gather */
    rp_gathering gathering;
    rp_gathered turn; /* what came in this turn of the loop */
    rp_worker *worker;
    rp_connection *prev, *next;
    rp_connection *next_dirty;
    bool is_dirty, ended_writing;
    bool is_dense;    /* its frames and messages were small in the last read */
    bool is_starved;  /* a call may not add to the answers that wait */
    bool is_draining; /* the notice is out, the end is not */
    rp_connection_state state;
    rp_link link;
    rp_h2 *h2;
    rp_lease_link *lease;
    rp_task *flushes; /* tasks with something to say at the end of this turn */
    rp_task *tasks;
    rp_task *deferred, *deferred_last; /* calls that wait for another turn, in order */
    rp_connection *prev_deferring, *next_deferring;
    rp_connection *prev_shaking, *next_shaking; /* in the queue of handshakes */
    rp_connection *next_closing;                /* in the queue of closed connections */
    int64_t queued_ns;                          /* since when it has been there */
    bool in_handshakes;                         /* whether it is */
    rp_abuse abuse;
    uint64_t charged_records; /* of link.idle_records: already charged to `abuse` */
    rp_gate_memo memo;
    char peer[RP_PEER_BYTES];
    char certificate[RP_AUTH_MAX_NAME_BYTES + 1];
    size_t parked_bytes;      /* of inserts that wait, and their chunks that no table holds */
    int64_t blocked_since_ns; /* nothing can be written; 0: not so */
    size_t
        pinned_bytes; /* of chunks its streams keep and no table holds: as of the last look */
    size_t making_bytes; /* of responses that are being made */
    size_t makers;       /* calls with such a response */
    size_t wanted_bytes; /* if is_starved: the least that one of its calls waits for */
    int64_t fed_from_ns; /* its calls do not go on before, even if there is room */
    size_t counted_bytes[RP_QUEUE_SIDES]; /* in the budget of queued bytes */
    struct rp_drawn *drawn;   /* items for its calls: queue_budget.h. NULL: no HTTP/2 yet */
    int64_t opened_ns;        /* plus the time that its handshake has been queued */
    int64_t heard_ns;         /* when something came last */
    int64_t moved_ns;         /* when an answer was written last, or none had to be */
    uint64_t left_then;       /* bytes of answers that were written by then */
    rp_pace reading;          /* how fast the peer takes answers */
    int64_t pinged_ns;        /* 0: no ping is out */
    int64_t headers_since_ns; /* since when settings or headers have been incomplete; 0: none */
    rp_intake intake;         /* its incomplete messages */
    rp_turn turns[RP_QUEUE_SIDES]; /* queue_budget.h, Q7 */
    size_t held_before_turn;       /* bytes of messages */
};

/* Takes a descriptor that was accepted. On its worker's thread. */
void rp_connection_open(rp_worker *worker, int fd, const char *peer, rp_tls *tls);
/* Makes the next step of its TLS handshake, or closes it if the peer has gone. */
void rp_connection_shake_hands(rp_connection *connection);
/* Closes it and ends its calls, which may take some turns. The pointer is invalid afterwards.
 */
void rp_connection_close(rp_connection *connection);
/* For closing.c: frees it after its last call. */
void rp_connection_free(rp_connection *connection);
/* The same, but its calls are told that the server is unavailable, if that can be written at
 * once. */
void rp_connection_end(rp_connection *connection);
/* Has it written to at the end of the turn. */
void rp_connection_touch(rp_connection *connection);
/* At the end of a turn: flushes tasks, writes, and asks for what comes next. */
void rp_connection_flush(rp_connection *connection);
/* True if a call may add about `bytes` of responses; 0: of items that are counted already,
 * which wait for their reader only. After a false it gets on_room when it may: calls that have
 * nothing waiting first, in turns. */
bool rp_connection_may_queue(rp_connection *connection, const rp_call *call, size_t bytes);
/* A draw did not have room for `bytes`, and has given back all that it had: has on_room called
 * once there is. If there seems to be, on_room is called after a while: what the next draw
 * takes for itself may leave too little again. */
void rp_connection_starve(rp_connection *connection, size_t bytes);
/* Bytes of responses that wait, and of items that were drawn for responses. */
size_t rp_connection_held(const rp_connection *connection);
/* Bytes that it may add to a side of the budget of queued bytes now. */
size_t rp_connection_room(const rp_connection *connection, rp_queue_side side);
/* Whether it may add one message or item of so many bytes, which may be more than that. If not,
 * room is short. */
bool rp_connection_has_room(rp_connection *connection, rp_queue_side side, size_t bytes);
/* Q7: whether one of its calls that wait for room may draw an item by a turn; until
 * rp_connection_drew() there is room for that item. */
RP_NODISCARD bool rp_connection_may_draw(rp_connection *connection);
void rp_connection_drew(rp_connection *connection);
/* It does not wait for a turn to draw any more. A turn that it has goes on. */
void rp_connection_leave_line(rp_connection *connection);
/* Whether it has room by a turn on any side; whether it moves too little on that side to keep
 * it (turns.h, T3). */
bool rp_connection_has_turn(const rp_connection *connection);
RP_NODISCARD bool rp_connection_is_behind(rp_connection *connection, rp_queue_side side);
/* Our thread was busy for so long: the time does not count as its peer's. */
void rp_connection_excuse(rp_connection *connection, int64_t late_ns);
/* Updates its part of the budget: after anything was added. */
void rp_connection_count(rp_connection *connection);
/* True if so much waits that no call is begun which would add to it unasked; says why. */
bool rp_connection_is_stuffed(const rp_connection *connection, rp_refusal *why);
/* Tells the peer to go elsewhere. */
void rp_connection_drain(rp_connection *connection);
/* Counts a refusal. */
void rp_connection_refused(rp_connection *connection, rp_refusal why);
/* Charges the abuse budget for one event. False, with the refusal counted, if the budget is
 * spent: then the connection has to end. */
RP_NODISCARD bool rp_connection_charge(rp_connection *connection, rp_abuse_kind kind);

#endif
