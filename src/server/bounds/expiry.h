/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that their peer resets because their own deadline (grpc-timeout) has passed.
 *
 * Both sides of a call watch its deadline. When the deadline has passed, the client resets the
 * call. A busy event loop may read the reset before it has ended the call itself, often
 * together with the headers of the call. Such a reset is no abuse, so it is not charged to the
 * abuse budget.
 *
 * The server does not know exactly when the peer's deadline began. The peer may have sent the
 * headers at any time since the connection was last read, so the deadline is computed from that
 * earliest time. Also, the timeout on the wire may be longer than the peer's own, because
 * clients round it up (gRPC by at most 1 %), and clocks are not exact. So a reset may come 5 ms
 * and a 64th of the timeout before the computed deadline.
 *
 * A peer gains nothing by sending tiny timeouts. If it does not reset such calls, the server
 * ends them in the next turn and charges nothing for it. The number of these calls in a turn is
 * bounded by the limit of open calls. The number of free resets in a turn has the same bound.
 *
 * Plain values that take the time as an argument. */
#ifndef RP_SERVER_BOUNDS_EXPIRY_H
#define RP_SERVER_BOUNDS_EXPIRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For the resets of one connection; zero is the initial state. */
typedef struct rp_expiries {
    int64_t turn_ns; /* beginning of the turn with the last free reset */
    size_t count;    /* free resets in that turn */
} rp_expiries;

/* Returns the earliest time at which the deadline of a call may have passed for its peer.
 * `heard_ns` (not negative) is the time at which the connection was read before the headers of
 * the call. `timeout_ns` < 0: there is no deadline. */
static inline int64_t rp_expiry_ns(int64_t heard_ns, int64_t timeout_ns)
{
    const int64_t slack_ns = 5000000 + timeout_ns / 64;

    if (timeout_ns < 0 || timeout_ns >= INT64_MAX - heard_ns) return INT64_MAX;
    return heard_ns + timeout_ns - slack_ns;
}

/* Returns true and counts the reset if it is free: the deadline may have passed (`expiry_ns`),
 * and fewer than `most` resets were free in this turn, which began at `now_ns`. */
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
