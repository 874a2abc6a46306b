/* SPDX-License-Identifier: Apache-2.0 */
/* The intake of a connection: how much room its incomplete messages reserve in the budget of
 * queued bytes (queue_budget.h), and whether they arrive fast enough.
 *
 * Without reservations, incomplete messages could fill the budget. In that state the server
 * could not read, no message would become complete, and the server could not tell which peer
 * had stopped sending. Therefore:
 *   I1  once the size of a message is known, the server reads more from its connection only
 *       with room reserved for the rest of the message. A connection reserves at most
 *       message_bytes, the limit of a message, even if several of its messages are incomplete;
 *   I2  the server always reads from a connection with reserved room, so that only its peer can
 *       delay the message;
 *   I3  a connection without reserved room usually holds at most UNRESERVED_BYTES (intake.c) of
 *       incomplete messages. No time limit applies to this connection, since its peer waits for
 *       the server. A connection holds more than UNRESERVED_BYTES only if several of its calls
 *       send at once. Two connections with so many bytes could wait for each other's room for
 *       ever. So if a connection without reserved room holds so many bytes for longer than the
 *       grace period, the server closes it;
 *   I4  while the budget is short, that is, a connection waits for room, a message with
 *       reserved room must arrive within the grace period (the limit message_grace_ms). In each
 *       window, an eighth of that period, the peer must send at least an eighth of the message;
 *   I5  while the budget is not short, a message may take longer than the grace period. But in
 *       each grace period from its beginning on, its bytes must arrive at 1 KiB/s or more on
 *       average.
 *
 * The functions read no clock: the caller passes the time. */
#ifndef RP_SERVER_BOUNDS_INTAKE_H
#define RP_SERVER_BOUNDS_INTAKE_H

#include "server/bounds/pace.h"

/* Zero-initialise it. */
typedef struct rp_intake {
    size_t reserved;       /* bytes that have not arrived, but that the budget counts already */
    int64_t held_since_ns; /* I3: since this time the connection waits for room and holds more
                              than UNRESERVED_BYTES; 0: it does not */
    rp_pace pace;          /* rule I4 */
    int64_t slow_since_ns; /* I5: beginning of the measurement; 0: no message is incomplete */
    uint64_t slow_arrived; /* bytes that had arrived at slow_since_ns */
} rp_intake;

/* Sets intake->reserved, the reservation of a connection. `held` is the number of message bytes
 * that the connection holds. `wanted` is the number of bytes that its messages still need, at
 * most message_bytes (I1). `counted` is the number of bytes that the budget counts for the
 * connection until now, with the reservation. If `may_add` is false, the budget has no more
 * room, so at most `counted` - `held` bytes are reserved. */
void rp_intake_reserve(rp_intake *intake, size_t counted, size_t held, size_t wanted,
                       bool may_add);

/* The present state of a connection. */
typedef struct rp_intake_look {
    bool reads;       /* the server reads from the connection */
    bool in_message;  /* a message is incomplete, and the server has not paused its call */
    bool is_short;    /* some connection waits for room in the budget */
    bool is_late;     /* the check is late: the worker was busy, and perhaps has not read from
                         the connection */
    size_t partial;   /* bytes of incomplete messages that have arrived */
    size_t awaited;   /* bytes of incomplete messages that have not arrived */
    uint64_t arrived; /* bytes of all messages that have arrived so far */
} rp_intake_look;

typedef enum rp_intake_verdict {
    RP_INTAKE_FINE,
    RP_INTAKE_HELD, /* I3: end the connection */
    RP_INTAKE_SLOW, /* I4 or I5: end the connection */
} rp_intake_verdict;

/* Applies I3 to I5. `grace_ns` is the grace period. Must be called about once a second. */
rp_intake_verdict rp_intake_judge(rp_intake *intake, const rp_intake_look *look,
                                  int64_t grace_ns, int64_t now_ns);

#endif
