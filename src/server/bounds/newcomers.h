/* SPDX-License-Identifier: Apache-2.0 */
/* The places for connections, and the newcomers: connections without an accepted call.
 *
 * A peer without credentials can open connections and keep them open. So connections that have
 * had an accepted call, and the others, the newcomers, are counted apart. A newcomer may take
 * any place that is free. If there is none, a new connection takes the place of the oldest
 * newcomer. RP_NEW_PLACES of the places are for newcomers only, so that there is always an
 * oldest one to close, and pages over HTTP/1.1, which have limits of their own, can be reached.
 *
 * Each worker has a list of its newcomers, oldest first. The thread that accepts connections
 * chooses the worker with the oldest newcomer, and makes a claim there. The worker closes its
 * oldest newcomer when the new connection arrives. Connections arrive in the order in which
 * they were sent, so a claim may be to the place of a newcomer that has not arrived yet: a
 * burst of connections is not refused because a worker is behind. A connection whose TLS
 * handshake waits for the server is not in the list, as it would lose its place before its
 * turn. It is in the list if too many of its address wait (handshakes.h).
 *
 * Invariants:
 *   W1  `count` is the length of the list, and `oldest_ns` is the time at which its first entry
 *       was added, INT64_MAX if the list is empty;
 *   W2  entries are in the order of their times.
 *
 * Functions belong to the worker's thread unless they say otherwise. */
#ifndef RP_SERVER_BOUNDS_NEWCOMERS_H
#define RP_SERVER_BOUNDS_NEWCOMERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RP_NEW_PLACES = 64, /* places for newcomers only */
    RP_NEW_CALLS = 8,   /* calls of a newcomer that may be open at once */
    /* Connections beyond all places, while others are being closed: those of four turns of the
     * loop that accepts them, as other loops may be behind. */
    RP_CHANGING_PLACES = 256,
};

#define RP_NEWCOMER_COMING (INT64_MAX - 1) /* younger than each that has arrived */

/* How many connections there may be. */
typedef struct rp_places {
    size_t accepted;        /* connections that have had an accepted call */
    size_t all;             /* with newcomers; at this number a new connection closes another */
    size_t most;            /* with those that are being closed for new ones */
    bool is_by_descriptors; /* the limit on descriptors allows less than `connections` */
} rp_places;

/* The places by the limit `connections`, if there are descriptors for `descriptors`
 * connections. */
rp_places rp_places_of(size_t connections, size_t descriptors);

/* A part of rp_connection. */
typedef struct rp_newcomer rp_newcomer;
struct rp_newcomer {
    rp_newcomer *prev, *next;
    int64_t since_ns;
    bool is_listed;
};

/* A list is read by other threads only through the four atomics, which are relaxed, since no
 * other memory depends on them. */
typedef struct rp_newcomers {
    rp_newcomer *first, *last;
    atomic_size_t count;           /* W1 */
    atomic_int_fast64_t oldest_ns; /* W1 */
    atomic_size_t coming;          /* connections on their way to the worker */
    atomic_size_t claims;          /* those of them that take the place of a newcomer */
} rp_newcomers;

void rp_newcomers_init(rp_newcomers *newcomers);
/* Adds a newcomer as the youngest. `now_ns` is not before that of the last one. */
void rp_newcomers_enter(rp_newcomers *newcomers, rp_newcomer *newcomer, int64_t now_ns);
/* Removes a newcomer, if it is in the list. */
void rp_newcomers_leave(rp_newcomers *newcomers, rp_newcomer *newcomer);

/* The time at which the oldest newcomer was added; RP_NEWCOMER_COMING if it has not arrived
 * yet; INT64_MAX if each newcomer that is there or on its way has a claim to its place. Any
 * thread. */
int64_t rp_newcomers_oldest_ns(rp_newcomers *newcomers);
/* Counts a connection on its way to the worker, which makes a claim if it `replaces` a
 * newcomer. Any thread. */
void rp_newcomers_send(rp_newcomers *newcomers, bool replaces);
/* Ends a claim, and returns the oldest newcomer, which is still in the list; or NULL. */
rp_newcomer *rp_newcomers_take(rp_newcomers *newcomers);
/* Ends the way of a connection, after it has entered or has been closed. */
void rp_newcomers_arrived(rp_newcomers *newcomers);

#endif
