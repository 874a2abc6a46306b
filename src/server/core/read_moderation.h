/* SPDX-License-Identifier: Apache-2.0 */
/* Read moderation: decides whether to delay the next read from a connection, so that small
 * messages accumulate.
 *
 * A writer that sends one small message at a time wakes the loop for each message, and the
 * server confirms each. Both cost more than the insert itself. A pause of a fraction of a
 * millisecond before the next read lets several messages accumulate. But a peer that waits for
 * each response before it sends the next message would only wait longer. So now and then a
 * pause is only half as long. A peer that streams sends half as many messages in half the time;
 * a peer that waits sends the same number, however long the pause is. If half pauses bring
 * nearly as many messages as full ones, pauses stop, and are tried again later, less and less
 * often.
 *
 * Invariants:
 *   G1  full + half < VERDICT between calls;
 *   G2  rest_ns <= longest_ns <= LONGEST_NS once they are set;
 *   G3  backoff <= MAX_BACKOFF, and skip <= backoff.
 *
 * rp_read_moderation is a plain value; the time is an argument. */
#ifndef RP_SERVER_CORE_READ_MODERATION_H
#define RP_SERVER_CORE_READ_MODERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The messages that were read from a connection in one turn. */
typedef struct rp_turn_reads {
    size_t messages;
    size_t bytes;
    bool others; /* the peer waits for the response to one of these messages */
} rp_turn_reads;

/* Zero-initialise it. */
typedef struct rp_read_moderation {
    int64_t last_ns;                       /* when messages were last read */
    int64_t others_ns;                     /* when `others` was last set in a turn */
    uint32_t full, half;                   /* pauses of either kind since the last verdict */
    uint64_t full_messages, half_messages; /* messages that were read after these pauses */
    uint32_t rest_ns;                      /* length of a full pause; 0: not set */
    uint32_t longest_ns;                   /* bound of rest_ns */
    uint32_t skip;                         /* turns without a pause before the next try */
    uint32_t backoff;                      /* value of `skip` when the last try failed */
    uint8_t rested; /* the pause before this turn: 0 none, 1 full, 2 half */
} rp_read_moderation;

/* Records the reads of a turn, which have at least one message. Call it at the end of the turn.
 * Returns for how many nanoseconds to pause reading; 0: no pause. */
int64_t rp_read_moderation_judge(rp_read_moderation *gathering, const rp_turn_reads *turn,
                                 int64_t now_ns);

#endif
