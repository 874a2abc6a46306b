/* SPDX-License-Identifier: Apache-2.0 */
/* Incomplete messages of a connection: the room that they reserve in the budget of queued bytes
 * (queue_budget.h), and whether they arrive fast enough.
 *
 * Without reservations, messages of which only a part has come could fill the budget: then no
 * connection is read, no message can become whole, and a peer that stopped sending looks like
 * one that we keep from sending. Therefore:
 *   I1  once the size of a message is known, its connection is read on only with room reserved
 *       for the rest of the message; a connection reserves no more than the largest message;
 *   I2  a connection with reserved room is read, so that only its peer can hold up the message;
 *   I3  a connection without reserved room holds at most UNRESERVED_BYTES of incomplete
 *       messages and has no clock: its peer waits for us. If it holds more, because several of its calls
 *       send at once, it is ended after the grace: two such connections can wait for each other;
 *   I4  while the budget is short, reserved room is for messages that arrive: in each window,
 *       an eighth of the grace, as many bytes as a message needs to be whole within the grace.
 *       So a peer has to send as much as it keeps from others once in each grace;
 *   I5  otherwise a message may take its time, as long as it takes 1 KiB/s after the grace.
 *
 * A plain value; time comes in as an argument. */
#ifndef RP_SERVER_BOUNDS_INTAKE_H
#define RP_SERVER_BOUNDS_INTAKE_H

#include "server/bounds/pace.h"

/* Zero is the beginning. */
typedef struct rp_intake {
    size_t reserved;       /* bytes still to come that the budget counts already */
    int64_t held_since_ns; /* I3: since when it has waited with too much; 0: it does not */
    rp_pace pace;          /* I4 */
    int64_t slow_since_ns; /* I5: since when it has been in messages; 0: it is not */
    uint64_t slow_arrived; /* what had arrived then */
} rp_intake;

/* Sets the reservation of a connection whose other bytes are `held`, of which the budget counts
 * `counted` until now, reservation included. `wanted` is what is to come of its messages, at
 * most the largest message (I1). If the connection may not count more, it keeps what it has
 * counted for its other messages. */
void rp_intake_reserve(rp_intake *intake, size_t counted, size_t held, size_t wanted,
                       bool may_add);

/* What there is to see of a connection now. */
typedef struct rp_intake_look {
    bool reads;       /* we read from it */
    bool in_message;  /* a message is incomplete, and its call is not paused */
    bool is_short;    /* somebody waits for room in the budget */
    bool is_late;     /* this look comes late: our thread was busy, and may not have read */
    size_t partial;   /* bytes of incomplete messages that have arrived, */
    size_t awaited;   /* and those to come */
    uint64_t arrived; /* bytes of all messages so far */
} rp_intake_look;

typedef enum rp_intake_verdict {
    RP_INTAKE_FINE,
    RP_INTAKE_HELD, /* I3: to be ended */
    RP_INTAKE_SLOW, /* I4 or I5: to be ended */
} rp_intake_verdict;

/* Looks at it, about once a second. */
rp_intake_verdict rp_intake_judge(rp_intake *intake, const rp_intake_look *look,
                                  int64_t grace_ns, int64_t now_ns);

#endif
