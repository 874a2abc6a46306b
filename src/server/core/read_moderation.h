/* SPDX-License-Identifier: Apache-2.0 */
/* Read moderation: decides whether to delay the next read from a connection, so that small
 * messages accumulate.
 *
 * A writer that sends one small message at a time wakes the loop for each, and each is
 * confirmed, which costs both sides more than the insert itself. A pause of a fraction of a
 * millisecond lets several messages accumulate. But a peer that waits for each response before
 * it sends the next message would only wait longer. An experiment tells the two apart: a peer
 * that streams sends half as much in half the time; a peer that waits sends the same, however
 * long the pause is. So now and then a pause is only half as long. Where that brings nearly as
 * many messages, pauses stop, and are tried again later, less and less often.
 *
 * Invariants:
 *   G1  full + half < VERDICT between calls;
 *   G2  rest_ns <= longest_ns <= LONGEST_NS once they are set;
 *   G3  backoff <= MAX_BACKOFF, and skip <= backoff.
 *
 * A plain value; time comes in as an argument. */
#ifndef RP_SERVER_CORE_READ_MODERATION_H
#define RP_SERVER_CORE_READ_MODERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What was read in one turn. */
typedef struct rp_turn_reads {
    size_t messages; /* inserts */
    size_t bytes;
    bool others; /* messages whose peer waits for the response were among them */
} rp_turn_reads;

/* Zero is the beginning. */
typedef struct rp_read_moderation {
    int64_t last_ns;                       /* when messages were read last */
    int64_t others_ns;                     /* when one was read whose peer waits */
    uint32_t full, half;                   /* pauses of either kind since the last verdict */
    uint64_t full_messages, half_messages; /* that were read after them */
    uint32_t rest_ns;                      /* length of a full pause; 0: not set */
    uint32_t longest_ns;                   /* bound of rest_ns */
    uint32_t skip;                         /* turns before the next try */
    uint32_t backoff;                      /* turns to skip when a try fails */
    uint8_t rested; /* before this turn: 0 no pause, 1 a full one, 2 a half */
} rp_read_moderation;

/* Records the reads of a turn (at least one message), at its end. Returns for how many
 * nanoseconds to pause reading; 0: no pause. */
int64_t rp_read_moderation_judge(rp_read_moderation *gathering, const rp_turn_reads *turn,
                                 int64_t now_ns);

#endif
