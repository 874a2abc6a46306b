/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether the peer of a connection is too slow. A timer checks each connection, more
 * often while something takes time. Closing it is up to the caller (connection.c). */
#ifndef RP_SERVER_CORE_CONNECTION_WATCH_H
#define RP_SERVER_CORE_CONNECTION_WATCH_H

#include "server/core/connection_state.h"

enum { RP_CHECK_NS = 1000000000 }; /* between checks while something may take too long */

static inline int64_t rp_ms(int64_t milliseconds)
{
    return milliseconds * 1000000;
}

typedef enum rp_connection_verdict {
    RP_CHECK_FINE,     /* check again at *due_ns; a ping may wait to be written */
    RP_CHECK_NEVER,    /* it needs no more checks */
    RP_CHECK_AGAIN,    /* it waits for us: check again at *due_ns */
    RP_CHECK_READ,     /* its first bytes are incomplete: read on, and check at *due_ns */
    RP_CHECK_TOO_SLOW, /* close it, because of *why */
} rp_connection_verdict;

/* Checks a connection whose timer is due. */
rp_connection_verdict rp_connection_check(rp_connection *connection, int64_t now_ns,
                                          int64_t *due_ns, rp_refusal *why);

/* Whether the peer may send us more now: not while the budget has no room for it. */
bool rp_connection_may_read(const rp_connection *connection);
/* Whether it waits for room, or has some by a turn: then it is checked more often. */
bool rp_connection_is_held_up(const rp_connection *connection);
/* Whether something has begun that may take too long. `is_blocked`: the socket was full. */
bool rp_connection_takes_time(const rp_connection *connection, bool is_blocked);

#endif
