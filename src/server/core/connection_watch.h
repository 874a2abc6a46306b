/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether the peer of a connection is too slow. A timer checks each connection, more
 * often while the server waits for the peer. The caller (connection.c) closes the connection.
 */
#ifndef RP_SERVER_CORE_CONNECTION_WATCH_H
#define RP_SERVER_CORE_CONNECTION_WATCH_H

#include "server/core/connection_state.h"

enum { RP_CHECK_NS = 1000000000 }; /* between checks while the peer may take too long */

static inline int64_t rp_ms(int64_t milliseconds)
{
    return milliseconds * 1000000;
}

typedef enum rp_connection_verdict {
    RP_CHECK_FINE,     /* check again at *due_ns; a ping may have been queued for writing */
    RP_CHECK_NEVER,    /* the connection needs no more checks */
    RP_CHECK_AGAIN,    /* the peer waits for the server: check again at *due_ns */
    RP_CHECK_READ,     /* the peer's first bytes are incomplete: read, and check at *due_ns */
    RP_CHECK_TOO_SLOW, /* close the connection, because of *why */
} rp_connection_verdict;

/* Checks a connection whose timer is due. */
rp_connection_verdict rp_connection_check(rp_connection *connection, int64_t now_ns,
                                          int64_t *due_ns, rp_refusal *why);

/* Whether to read from the connection now: false while the budget has no room for its messages.
 */
bool rp_connection_may_read(const rp_connection *connection);
/* Whether the connection waits for room in the budget, or has a turn (Q7). Such a connection is
 * checked more often. */
bool rp_connection_is_held_up(const rp_connection *connection);
/* Whether the server waits for the peer, which may take too long: to send the rest of a message
 * or of headers, or to read responses. `is_blocked`: the socket was full. */
bool rp_connection_takes_time(const rp_connection *connection, bool is_blocked);

#endif
