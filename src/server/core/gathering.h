/* SPDX-License-Identifier: Apache-2.0 */
/* Whether to let small messages gather before a connection is read from again.
 *
 * Writers that send one small message at a time make us wake for each and answer each, which
 * costs both sides more than the work itself. Not looking for a fraction of a millisecond lets
 * several gather. But a peer that waits for our answer before it goes on would only wait
 * longer. The two are told apart by trying: a peer that streams sends half as much in half the
 * time; one that waits sends the same, however long we look away. So now and then a rest is
 * only half as long, and where that brings nearly as much we stop resting, and try again later,
 * less and less often.
 *
 * A plain value; time comes in as an argument. */
#ifndef RP_SERVER_CORE_GATHERING_H
#define RP_SERVER_CORE_GATHERING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What came in one turn. */
typedef struct rp_gathered {
    size_t messages; /* inserts */
    size_t bytes;
    bool others; /* messages that wait for an answer were among them */
} rp_gathered;

/* Zero is the beginning. */
typedef struct rp_gathering {
    int64_t last_ns;                       /* when messages came last */
    int64_t others_ns;                     /* when one came that waits for an answer */
    uint32_t full, half;                   /* rests of either kind since the last verdict, */
    uint64_t full_messages, half_messages; /* and what they brought */
    uint32_t rest_ns,
        longest_ns;   /* of a full rest, and how long they may become; 0: not known */
    uint32_t skip;    /* turns before the next try */
    uint32_t backoff; /* turns to skip when a try fails */
    uint8_t rested;   /* what comes now comes after: 0 no rest, 1 a full one, 2 a half */
} rp_gathering;

/* Tells what a turn brought (at least one message), at its end. Returns for how many
 * nanoseconds to look away now; 0: not at all. */
int64_t rp_gathering_judge(rp_gathering *gathering, const rp_gathered *turn, int64_t now_ns);

#endif
