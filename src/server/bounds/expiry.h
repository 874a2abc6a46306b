/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether a client's reset of a call is free, that is, not charged to the abuse budget
 * (abuse.h). When the deadline of a call (grpc-timeout) passes, a correct client resets the
 * call. So a reset is free if, by the client's clock, the deadline may have passed.
 *
 * The server also ends a call when the deadline passes. But a busy event loop of the server can
 * read the client's reset before the loop has ended the call.
 *
 * The server does not know exactly when the client's timeout began. The server finds the call's
 * headers when it reads from the connection. The client can have sent the headers at any time
 * since the server's previous read. So the server computes the deadline from the time of the
 * previous read. Also, the timeout in the headers can be longer than the client's own timeout,
 * because clients round it up (gRPC by at most 1 %), and clocks are not exact. So a reset is
 * also free up to 5 ms and a 64th of the timeout before the computed deadline.
 *
 * A client gains nothing by sending tiny timeouts. Without the resets, the server would end the
 * calls with these timeouts in the next turn (iteration) of its event loop and charge nothing.
 * The limit on open calls bounds the number of calls in a turn, and the number of free resets
 * in a turn has the same bound.
 *
 * The functions read no clock: the caller passes the time. */
#ifndef RP_SERVER_BOUNDS_EXPIRY_H
#define RP_SERVER_BOUNDS_EXPIRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The free resets of one connection. Zero-initialise it. */
typedef struct rp_expiries {
    int64_t turn_ns; /* beginning of the turn with the last free reset */
    size_t count;    /* free resets in that turn */
} rp_expiries;

/* Returns the earliest time at which the deadline of a call may have passed by the client's
 * clock. `heard_ns` (not negative) is the time of the last read of the connection before the
 * call's headers. If `timeout_ns` is negative, the call has no deadline, and the result is
 * INT64_MAX. */
static inline int64_t rp_expiry_ns(int64_t heard_ns, int64_t timeout_ns)
{
    const int64_t slack_ns = 5000000 + timeout_ns / 64;

    if (timeout_ns < 0 || timeout_ns >= INT64_MAX - heard_ns) return INT64_MAX;
    return heard_ns + timeout_ns - slack_ns;
}

/* Returns whether a reset is free, and counts it if so. It is free if the deadline may have
 * passed (`expiry_ns`, by rp_expiry_ns()), and fewer than `most` resets were free in this turn
 * of the loop. `now_ns` is the time at which the turn began. */
static inline bool rp_expiries_take(rp_expiries *expiries, int64_t expiry_ns, size_t most,
                                    int64_t now_ns)
{
    if (now_ns < expiry_ns) return false;
    if (expiries->turn_ns != now_ns) *expiries = (rp_expiries){.turn_ns = now_ns};
    if (expiries->count >= most) return false;
    expiries->count++;
    return true;
}

#endif
