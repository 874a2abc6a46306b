/* SPDX-License-Identifier: Apache-2.0 */
/* Read moderation: decides whether to pause before the next read from a connection, so that
 * small messages accumulate and are read together.
 *
 * If a writer sends one small message at a time, each message wakes the event loop, and the
 * server confirms each message. Waking and confirming cost more than the insert itself. A pause
 * of a fraction of a millisecond before the next read lets several messages accumulate. But if
 * the peer waits for each response before it sends the next message, a pause only makes it wait
 * longer. To tell these peers apart, every fourth pause is only half as long. A peer that
 * streams sends about half as many messages during a half pause. A peer that waits sends the
 * same number, however long the pause is. If nearly as many messages arrive in half pauses as
 * in full ones, the pauses become shorter, and at last the server makes no pauses. It tries
 * pauses again later, each time after a longer time.
 *
 * Invariants:
 *   G1  full + half < VERDICT between calls: after VERDICT pauses, half and full ones are
 *       compared, and both counts are set to 0;
 *   G2  rest_ns <= longest_ns <= LONGEST_NS once they are set;
 *   G3  backoff <= MAX_BACKOFF, and skip <= backoff.
 *
 * The names in capitals are constants of read_moderation.c. The function reads no clock: the
 * caller passes the time. */
#ifndef RP_SERVER_CORE_READ_MODERATION_H
#define RP_SERVER_CORE_READ_MODERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The messages that were read from a connection in one turn of the event loop. */
typedef struct rp_turn_reads {
    size_t messages;
    size_t bytes;
    bool others; /* some of these messages are not of an insert stream. A peer that sends other
                    messages waits for the response to each of them */
} rp_turn_reads;

/* The state of the moderation of one connection. Zero-initialise it. */
typedef struct rp_read_moderation {
    int64_t last_ns;                       /* time at which messages were last read */
    int64_t others_ns;                     /* time at which `others` was last set in a turn */
    uint32_t full, half;                   /* pauses of each kind since the last comparison */
    uint64_t full_messages, half_messages; /* messages read after the pauses of each kind */
    uint32_t rest_ns;                      /* length of a full pause; 0: not set */
    uint32_t longest_ns;                   /* bound of rest_ns */
    uint32_t skip;    /* turns that remain without a pause before pauses are tried again */
    uint32_t backoff; /* value to which `skip` was last set, and from which it counts down */
    uint8_t rested;   /* kind of the pause before this turn: 0 none, 1 full, 2 half */
} rp_read_moderation;

/* Records `turn`, the reads of a turn, and returns for how many nanoseconds to pause reading;
 * 0: no pause. Must be called at the end of each turn that read a message of the connection. */
int64_t rp_read_moderation_judge(rp_read_moderation *moderation, const rp_turn_reads *turn,
                                 int64_t now_ns);

#endif
