/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether the peer of a connection is too slow. connection.c calls
 * rp_connection_check() by a timer of each connection, more often while the server waits for
 * the peer. If the peer is too slow, connection.c closes the connection. */
#ifndef RP_SERVER_CORE_CONNECTION_WATCH_H
#define RP_SERVER_CORE_CONNECTION_WATCH_H

#include "server/core/connection_state.h"

enum {
    RP_CHECK_NS = 1000000000
}; /* time between checks while rp_connection_takes_time() is
      true */

static inline int64_t rp_ms(int64_t milliseconds)
{
    return milliseconds * 1000000;
}

typedef enum rp_connection_verdict {
    RP_CHECK_FINE,     /* not too slow: check again at *due_ns. If a ping was due, the check has
                          queued it */
    RP_CHECK_NEVER,    /* the connection needs no more checks */
    RP_CHECK_AGAIN,    /* the TLS handshake waits in a queue of the server, so the peer is not
                          judged: check again at *due_ns */
    RP_CHECK_READ,     /* the connection's first bytes, which show its protocol, have not all
                          arrived: read, and check again at *due_ns */
    RP_CHECK_TOO_SLOW, /* close the connection; *why is the reason */
} rp_connection_verdict;

/* Checks a connection whose timer is due. `*due_ns` receives the time of the next check, and
 * `*why` the reason for closing the connection. */
rp_connection_verdict rp_connection_check(rp_connection *connection, int64_t now_ns,
                                          int64_t *due_ns, rp_refusal *why);

/* Returns whether to read from the connection now: false while the budget of queued bytes
 * (queue_budget.h) has no room for the connection's messages. */
bool rp_connection_may_read(const rp_connection *connection);
/* Returns whether the connection waits for room in the budget, or has a loan, which is room
 * beyond the budget's limit (Q7 in queue_budget.h). If true, rp_connection_check() must be
 * called more often for this connection. */
bool rp_connection_is_held_up(const rp_connection *connection);
/* Returns whether the connection must be checked every RP_CHECK_NS at least. There are two
 * reasons: the server waits until the peer sends the rest of a message or of headers, or reads
 * responses; or rp_connection_is_held_up() is true. `is_blocked` says that the socket's buffer
 * was full at the last write. */
bool rp_connection_takes_time(const rp_connection *connection, bool is_blocked);

#endif
