/* SPDX-License-Identifier: Apache-2.0 */
/* The places for connections, and the newcomers: connections without an accepted call.
 *
 * A peer without credentials can open connections and keep them open. So newcomers are counted
 * apart from connections that have had an accepted call. A newcomer may take any place that is
 * free. If no place is free, a new connection takes the place of the oldest newcomer.
 * RP_NEW_PLACES of the places are for newcomers only. So there is always an oldest newcomer to
 * close, and pages over HTTP/1.1, which have limits of their own, can be reached.
 *
 * Each worker has a list of its newcomers, oldest first. The thread that accepts connections
 * chooses the worker with the oldest newcomer, makes a claim to a place there, and sends the
 * new connection to that worker. When the connection arrives, the worker closes its oldest
 * newcomer. A claim may also be to the place of a newcomer that was sent to the worker and has
 * not arrived yet: it will arrive first, since connections arrive in the order in which they
 * were sent. So a burst of connections is not refused because a worker is behind.
 *
 * A connection whose TLS handshake waits for the server is not in the list, as it would lose
 * its place before its turn. But a handshake becomes late if too many newer ones wait in its
 * queue (handshakes.h). Then its connection is in the list.
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
    /* Connections that may be open beyond all places, while others are being closed. The loop
     * that accepts connections needs four turns to accept so many. The other loops, which close
     * the old connections, may be behind by that time. */
    RP_CHANGING_PLACES = 256,
};

#define RP_NEWCOMER_COMING (INT64_MAX - 1) /* later than the time of any arrived newcomer */

/* How many connections there may be. */
typedef struct rp_places {
    size_t accepted;        /* connections that have had an accepted call */
    size_t all;             /* with newcomers; at this number a new connection closes another */
    size_t most;            /* with newcomers, and connections that are being closed */
    bool is_by_descriptors; /* the limit on descriptors allows less than `connections` */
} rp_places;

/* Computes the places from the limit `connections`, and from `descriptors`, the number of
 * connections for which there are descriptors. */
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
    atomic_size_t claims;          /* how many of these take the place of a newcomer */
} rp_newcomers;

void rp_newcomers_init(rp_newcomers *newcomers);
/* Adds a newcomer as the youngest. `now_ns` never decreases from call to call. */
void rp_newcomers_enter(rp_newcomers *newcomers, rp_newcomer *newcomer, int64_t now_ns);
/* Removes a newcomer, if it is in the list. */
void rp_newcomers_leave(rp_newcomers *newcomers, rp_newcomer *newcomer);

/* Returns the time at which the oldest newcomer was added. RP_NEWCOMER_COMING: all newcomers
 * are still on their way. INT64_MAX: there are as many claims as newcomers in the list and on
 * their way, so no place is left to claim. Any thread. */
int64_t rp_newcomers_oldest_ns(rp_newcomers *newcomers);
/* Counts a connection that is sent to the worker. If it `replaces` a newcomer, also counts a
 * claim. Any thread. */
void rp_newcomers_send(rp_newcomers *newcomers, bool replaces);
/* Ends a claim. Returns the oldest newcomer, which stays in the list; NULL if the list is
 * empty. */
rp_newcomer *rp_newcomers_take(rp_newcomers *newcomers);
/* Counts a connection as no longer on its way, after it has entered the list or was closed. */
void rp_newcomers_arrived(rp_newcomers *newcomers);

#endif
