/* SPDX-License-Identifier: Apache-2.0 */
/* The places for connections, and the newcomers: connections without an accepted call. A place
 * is the right of a connection to be open; the number of places is limited. A call is accepted
 * when the credentials of the peer allow it.
 *
 * A peer without credentials can open connections and keep them open. These connections must
 * not keep others out. So if no place is free, a new connection takes the place of the oldest
 * newcomer, which is closed. RP_NEW_PLACES of the places are for newcomers only. So there is
 * always a newcomer to close, and a new connection is possible even when all other places are
 * taken.
 *
 * Each worker has a list of its newcomers, oldest first. The thread that accepts connections
 * chooses the worker with the oldest newcomer, counts a claim to the place of that newcomer,
 * and sends the new connection to the worker. When the new connection arrives, the worker
 * closes its oldest newcomer. A claim can also be to the place of a newcomer that is still on
 * its way to the worker. That newcomer arrives before the new connection, since connections
 * arrive in the order in which they were sent. So the server need not refuse connections of a
 * burst while a worker is busy.
 *
 * A connection whose TLS handshake is queued (core/handshakes.h) is not in the list, since a
 * new connection could take its place before the handshake's turn comes. If the handshake
 * becomes late, because too many newer handshakes wait in the queue, the connection is in the
 * list.
 *
 * Invariants:
 *   W1  `count` is the length of the list. `oldest_ns` is the time at which the first entry was
 *       added, or INT64_MAX if the list is empty;
 *   W2  entries are in the order of their times.
 *
 * A function must be called on the worker's thread unless its comment says otherwise. */
#ifndef RP_SERVER_BOUNDS_NEWCOMERS_H
#define RP_SERVER_BOUNDS_NEWCOMERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RP_NEW_PLACES = 64, /* places for newcomers only */
    RP_NEW_CALLS = 8,   /* calls of a newcomer that may be open at once */
    /* How many more connections than places are allowed to be open while old ones are being
     * closed. The event loop that accepts connections accepts at most this many in four of its
     * turns (iterations). So the loops that close the old connections can be late by four of
     * those turns. */
    RP_CHANGING_PLACES = 256,
};

#define RP_NEWCOMER_COMING (INT64_MAX - 1) /* later than the time of any arrived newcomer */

/* How many connections may be open. */
typedef struct rp_places {
    size_t accepted;        /* places for connections that have had an accepted call */
    size_t all;             /* all places; if they are taken, a newcomer is closed for each new
                               connection */
    size_t most;            /* `all`, plus at most RP_CHANGING_PLACES for connections that are
                               being closed */
    bool is_by_descriptors; /* there are fewer descriptors than the limit `connections` */
} rp_places;

/* Computes the places. `connections` is the server's limit `connections`. `descriptors` is the
 * number of connections for which the process can have descriptors. */
rp_places rp_places_of(size_t connections, size_t descriptors);

/* The list entry of a newcomer, embedded in rp_connection. */
typedef struct rp_newcomer rp_newcomer;
struct rp_newcomer {
    rp_newcomer *prev, *next;
    int64_t since_ns;
    bool is_listed;
};

/* The newcomers of a worker. Other threads read only the four atomics. Accesses to them are
 * relaxed, since no other memory depends on them. */
typedef struct rp_newcomers {
    rp_newcomer *first, *last;
    atomic_size_t count;           /* invariant W1 */
    atomic_int_fast64_t oldest_ns; /* invariant W1 */
    atomic_size_t coming;          /* connections on their way to the worker */
    atomic_size_t claims; /* how many of these `coming` ones take the place of a newcomer */
} rp_newcomers;

void rp_newcomers_init(rp_newcomers *newcomers);
/* Adds a newcomer at the end of the list. `now_ns` must not decrease from call to call. */
void rp_newcomers_enter(rp_newcomers *newcomers, rp_newcomer *newcomer, int64_t now_ns);
/* Removes a newcomer, if it is in the list. */
void rp_newcomers_leave(rp_newcomers *newcomers, rp_newcomer *newcomer);

/* Returns the time at which the oldest newcomer was added. Returns RP_NEWCOMER_COMING if all
 * newcomers are still on their way. Returns INT64_MAX if there are as many claims as newcomers
 * in the list and on their way: no place is left to claim. Any thread may call it. */
int64_t rp_newcomers_oldest_ns(rp_newcomers *newcomers);
/* Counts a connection that is sent to the worker. If `replaces` is true, also counts a claim.
 * Any thread may call it. */
void rp_newcomers_send(rp_newcomers *newcomers, bool replaces);
/* Ends a claim. Returns the oldest newcomer, which stays in the list; NULL if the list is
 * empty. */
rp_newcomer *rp_newcomers_take(rp_newcomers *newcomers);
/* Counts a connection as no longer on its way, after it has entered the list or was closed. */
void rp_newcomers_arrived(rp_newcomers *newcomers);

#endif
