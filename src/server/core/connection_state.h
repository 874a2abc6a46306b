/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a connection. Only the thread of its worker may use it.
 *
 * Invariants:
 *   C1  a connection is in worker->connections exactly while it is not CLOSED;
 *   C2  is_dirty is set exactly while the connection is in worker->dirty, the list of
 *       connections to flush at the end of the turn. A CLOSED connection is never dirty;
 *   C3  h2 and drawn are set from the state H2 on, and NULL before;
 *   C4  lease is set in the state LEASE only;
 *   C5  counted_bytes[side] is the number of bytes that the budget of queued bytes counts for
 *       the connection on that side;
 *   C6  `newcomer` is in worker->newcomers if the connection is not CLOSED and has had no
 *       accepted call (is_accepted). There is one exception: while its TLS handshake is in a
 *       queue and not late (handshakes.h), it is not in the list. */
#ifndef RP_SERVER_CORE_CONNECTION_STATE_H
#define RP_SERVER_CORE_CONNECTION_STATE_H

#include "net/link.h"
#include "net/listener.h"
#include "net/loop.h"
#include "server/auth/gate.h"
#include "server/bounds/abuse.h"
#include "server/bounds/expiry.h"
#include "server/bounds/intake.h"
#include "server/bounds/newcomers.h"
#include "server/bounds/refusal.h"
#include "server/core/closing.h"
#include "server/core/drawn.h"
#include "server/core/handshakes.h"
#include "server/core/queue_budget.h"
#include "server/core/read_moderation.h"
#include "server/core/server_state.h"
#include "server/metrics/clients.h"
#include "wire/h2/h2.h"

enum { RP_H2_ENHANCE_YOUR_CALM = 0xb }; /* an error code of HTTP/2 */

typedef struct rp_lease_link rp_lease_link;

typedef enum rp_connection_state {
    RP_CONNECTION_HANDSHAKE, /* TLS */
    RP_CONNECTION_SNIFF,     /* the first bytes decide between HTTP/2, HTTP/1.1 and a lease */
    RP_CONNECTION_H2,
    RP_CONNECTION_LEASE,   /* lease_link.h */
    RP_CONNECTION_CLOSING, /* queued bytes are written, nothing is read */
    RP_CONNECTION_CLOSED,  /* the connection's calls are being ended: closing.h */
} rp_connection_state;

struct rp_connection {
    rp_watch watch;
    rp_timer timer; /* the next check of connection_watch.h */
    rp_timer rest;  /* armed while reads are delayed: read_moderation.h */
    rp_read_moderation moderation;
    rp_turn_reads turn; /* reads in this turn of the loop */
    rp_worker *worker;
    rp_connection *prev, *next;
    rp_connection *next_dirty;
    bool is_dirty, ended_writing; /* C2; the link is broken, so nothing more is written */
    bool is_dense;                /* the frames and messages of the last read were small */
    bool is_unread;               /* the read is delayed: deferral.h */
    bool is_starved;              /* one of its calls waits for room for responses */
    bool is_draining;             /* the first GOAWAY has been sent, the final one has not */
    bool is_accepted; /* the connection has had a call that its credentials allow (V5 in
                         server_state.h) */
    rp_connection_state state;
    rp_link link;
    rp_h2 *h2;
    rp_lease_link *lease;
    rp_task *flushes; /* tasks whose on_flush is to be called at the end of this turn */
    rp_task *tasks;
    rp_task *deferred, *deferred_last; /* calls that wait for a later turn, oldest first */
    rp_connection *prev_deferring, *next_deferring;
    rp_connection *prev_unread, *next_unread;
    rp_handshake handshake;
    rp_newcomer newcomer; /* invariant C6 */
    rp_closed closed;
    rp_abuse abuse;
    rp_expiries expiries;     /* resets of calls past their deadlines, which do not count as
                                 abuse */
    uint64_t charged_records; /* how many of link.idle_records have been charged to `abuse` */
    rp_client client;         /* what the page /v1/clients shows of the connection */
    rp_gate_memo memo;
    char peer[RP_PEER_BYTES];
    char certificate[RP_AUTH_MAX_NAME_BYTES + 1];
    size_t parked_bytes;      /* bytes that its waiting calls hold outside the tables ("parked":
                                 pinned.h) */
    int64_t blocked_since_ns; /* time since which the socket is full; 0: not blocked */
    size_t pinned_bytes;      /* bytes of chunks that its insert streams keep and that no table
                                 holds */
    size_t making_bytes;      /* bytes of responses that are being made */
    size_t makers;            /* calls whose response is being made */
    size_t wanted_bytes; /* if is_starved: the fewest bytes of room for which one of its calls
                            waits */
    int64_t fed_from_ns; /* calls that wait for room do not continue before this time */
    size_t counted_bytes[RP_QUEUE_SIDES];
    rp_drawn *drawn;    /* counts the items drawn for its calls */
    int64_t opened_ns;  /* time of opening, plus the time for which its TLS handshake was
                           queued */
    int64_t heard_ns;   /* time of the last read of bytes */
    int64_t moved_ns;   /* time at which response bytes were last written, or at which last none
                           were queued */
    uint64_t left_then; /* value of rp_h2_left_bytes() at moved_ns */
    rp_pace reading;    /* measures how fast the peer reads responses */
    int64_t pinged_ns;  /* time of a ping that has no response yet; 0: none */
    int64_t headers_since_ns; /* time since which settings or headers are incomplete; 0: they
                                 are not */
    rp_intake intake;         /* its incomplete messages */
    rp_loan loans[RP_QUEUE_SIDES]; /* loans beyond the limits (queue_budget.h, Q7) */
    size_t held_before_loan; /* bytes of its messages when the loan on RP_QUEUE_IN began */
};

/* Makes the worker call rp_connection_flush() at the end of this turn of its loop. */
void rp_connection_touch(rp_connection *connection);
/* Counts and logs a refusal of the connection or of one of its calls. */
void rp_connection_refused(rp_connection *connection, rp_refusal why);
/* Charges one event to the connection's abuse budget (abuse.h). The connection must be in the
 * state H2. Returns false if the budget is spent: then the refusal is counted, and the HTTP/2
 * session is ended with a GOAWAY that gives the reason. */
RP_NODISCARD bool rp_connection_charge(rp_connection *connection, rp_abuse_kind kind);

/* Returns how many connections may be open by the worker's copy of the limits (newcomers.h). */
rp_places rp_worker_places(const rp_worker *worker);
/* Must be called when the peer's credentials allow a call of the connection. Records that the
 * connection has had an accepted call, so that it is not closed to make a place for a new
 * connection (newcomers.h). If too many other connections have had accepted calls, returns
 * RP_UNAVAILABLE, and `*why` receives the reason. */
RP_NODISCARD rp_status rp_connection_accept(rp_connection *connection, rp_refusal *why,
                                            rp_error *err);

#endif
