/* SPDX-License-Identifier: Apache-2.0 */
/* Incomplete messages of a connection: the room that they reserve in the budget of queued bytes
 * (queue_budget.h), and whether they arrive fast enough.
 *
 * Without reservations, incomplete messages could fill the budget. Then the server would read
 * from no connection, no message could become complete, and a peer that stopped sending would
 * look like one from which the server does not read. Therefore:
 *   I1  once the size of a message is known, the server reads more from its connection only
 *       with room reserved for the rest of the message. A connection reserves at most
 *       message_bytes, the limit of a message, even if several of its messages are incomplete;
 *   I2  a connection with reserved room is read, so that only its peer can delay the message;
 *   I3  a connection without reserved room holds at most UNRESERVED_BYTES of incomplete
 *       messages, and no time limit applies: its peer waits for the server. It can hold more
 *       only if several of its calls send at once. Two such connections could wait for ever,
 *       each for the room that the other one holds. So the server closes a connection that
 *       holds more for longer than the grace period;
 *   I4  while the budget is short (another connection waits for room), a message with reserved
 *       room has to arrive within the grace period. In each window, an eighth of that period,
 *       the peer has to send at least an eighth of the message. So in each grace period a peer
 *       sends at least the bytes that it has reserved;
 *   I5  while the budget is not short, a message may take longer. But from its beginning on, in
 *       each period as long as the grace period, bytes must arrive at 1 KiB/s or more on
 *       average.
 *
 * rp_intake is a plain value; the time is an argument. */
#ifndef RP_SERVER_BOUNDS_INTAKE_H
#define RP_SERVER_BOUNDS_INTAKE_H

#include "server/bounds/pace.h"

/* Zero-initialise it. */
typedef struct rp_intake {
    size_t reserved;       /* bytes that have not arrived and that the budget counts already */
    int64_t held_since_ns; /* I3: since when it has waited with too many bytes; 0: it has not */
    rp_pace pace;          /* I4 */
    int64_t slow_since_ns; /* I5: beginning of the measurement; 0: no message is incomplete */
    uint64_t slow_arrived; /* bytes that had arrived at slow_since_ns */
} rp_intake;

/* Sets the reservation of a connection. `held` is the number of message bytes that it holds,
 * `wanted` the number that its messages still need, at most message_bytes (I1). `counted` is
 * what the budget counts for it until now, the reservation included. If `may_add` is false, the
 * budget may not count more, so at most `counted` - `held` bytes are reserved. */
void rp_intake_reserve(rp_intake *intake, size_t counted, size_t held, size_t wanted,
                       bool may_add);

/* The present state of a connection. */
typedef struct rp_intake_look {
    bool reads;       /* the server reads from it */
    bool in_message;  /* a message is incomplete, and the server has not paused its call */
    bool is_short;    /* a connection waits for room in the budget */
    bool is_late;     /* the check is late: the worker was busy, and may not have read */
    size_t partial;   /* bytes of incomplete messages that have arrived */
    size_t awaited;   /* bytes of incomplete messages that have not arrived */
    uint64_t arrived; /* bytes of all messages so far */
} rp_intake_look;

typedef enum rp_intake_verdict {
    RP_INTAKE_FINE,
    RP_INTAKE_HELD, /* I3: end the connection */
    RP_INTAKE_SLOW, /* I4 or I5: end the connection */
} rp_intake_verdict;

/* Applies I3 to I5. Call it about once a second. */
rp_intake_verdict rp_intake_judge(rp_intake *intake, const rp_intake_look *look,
                                  int64_t grace_ns, int64_t now_ns);

#endif
