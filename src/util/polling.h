/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether a thread polls a descriptor for a short time before it sleeps. If a thread
 * sleeps, it runs again about 10 us after the event for which it waits. If it polls, it sees
 * the event at once.
 *
 * A poll that finds nothing is a miss. After RP_POLL_MISSES misses in a row, only one in
 * RP_POLL_AGAIN waits polls, until a poll finds something again. If the process has only one
 * processor, no wait polls, since the thread that causes the event needs the processor. */
#ifndef RP_UTIL_POLLING_H
#define RP_UTIL_POLLING_H

#include <stdatomic.h>
#include <stdbool.h>

#include "util/thread.h"

enum { RP_POLL_MISSES = 4, RP_POLL_AGAIN = 32 };

/* Several threads may use one rp_polling without a lock. They can then lose a count, which does
 * no harm. */
typedef struct rp_polling {
    bool has_processors; /* the process may use more than one processor */
    atomic_uint misses;  /* misses in a row; from RP_POLL_MISSES on, the number of waits is
                            counted instead */
} rp_polling;

static inline void rp_polling_init(rp_polling *p)
{
    atomic_init(&p->misses, 0);
    p->has_processors = rp_thread_processors() > 1;
}

/* Returns true if this wait should poll. */
static inline bool rp_polling_may(rp_polling *p)
{
    unsigned misses = atomic_load_explicit(&p->misses, memory_order_relaxed);

    if (!p->has_processors) return false;
    if (misses < RP_POLL_MISSES) return true;
    atomic_store_explicit(&p->misses, misses + 1, memory_order_relaxed);
    return misses % RP_POLL_AGAIN == 0;
}

/* Records the result of a poll. */
static inline void rp_polling_count(rp_polling *p, bool has_found)
{
    unsigned misses = atomic_load_explicit(&p->misses, memory_order_relaxed);

    if (has_found)
        misses = 0;
    else if (misses < RP_POLL_MISSES)
        misses++;
    atomic_store_explicit(&p->misses, misses, memory_order_relaxed);
}

#endif
