/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that their peer resets because their own deadline (grpc-timeout) has passed.
 *
 * Both sides of a call watch its deadline, and a client resets the call when it is over. If the
 * event loop is busy, it reads that reset before it has ended the call, often together with the
 * headers. Such a reset is no abuse, so it is not charged to the abuse budget.
 *
 * When the deadline of the peer began is not known exactly: its headers were sent at any time
 * since the connection was last read. The earliest possible time counts. Besides, the timeout
 * on the wire may be longer than the deadline of the peer, because clients round it up (gRPC by
 * at most 1 %), and clocks are not exact: 5 ms and a 64th of the timeout are allowed.
 *
 * This gives nothing to a peer that sends tiny timeouts. Without a reset, the server ends such
 * calls in the next turn, which is free. Only the limit of open calls bounds how many there are
 * in a turn, and the same number bounds the resets that are free in a turn.
 *
 * Plain values that take the time as an argument. */
#ifndef RP_SERVER_BOUNDS_EXPIRY_H
#define RP_SERVER_BOUNDS_EXPIRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For the resets of one connection; zero is the initial state. */
typedef struct rp_expiries {
    int64_t turn_ns; /* when the turn began in which the last one was free */
    size_t count;    /* that were free in that turn */
} rp_expiries;

/* When the deadline of a call may have passed for its peer. `heard_ns` (not negative) is the
 * time at which the connection was read before the headers of the call. `timeout_ns` < 0: there
 * is no deadline. */
static inline int64_t rp_expiry_ns(int64_t heard_ns, int64_t timeout_ns)
{
    const int64_t slack_ns = 5000000 + timeout_ns / 64;

    if (timeout_ns < 0 || timeout_ns >= INT64_MAX - heard_ns) return INT64_MAX;
    return heard_ns + timeout_ns - slack_ns;
}

/* Whether a reset at `now_ns`, the beginning of the turn, is free: the deadline may have passed
 * (`expiry_ns`), and fewer than `most` were free in this turn. Counts it. */
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
