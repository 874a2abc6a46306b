/* SPDX-License-Identifier: Apache-2.0 */
/* A barrier for threads that meet every few microseconds: the members of a team
 * (reprise/rl/team.h). A thread that waits spins first, and sleeps if the wait takes longer. */
#ifndef RP_PAL_BARRIER_H
#define RP_PAL_BARRIER_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { RP_CACHE_LINE = 64 };

typedef struct rp_barrier {
    alignas(RP_CACHE_LINE) atomic_uint arrived;    /* number of threads that wait in the current
                                                      meeting */
    alignas(RP_CACHE_LINE) atomic_uint generation; /* number of the current meeting */
    atomic_uint sleepers;                          /* number of threads that sleep */
    unsigned count;                                /* number of threads that meet */
} rp_barrier;

/* How long one thread spins. Each thread has an rp_barrier_waiter of its own, which must be
 * zero at first; rp_barrier_meet() adapts it. */
typedef struct rp_barrier_waiter {
    int64_t spin_ns; /* how long the thread spins in its next wait before it sleeps */
    unsigned waits;  /* number of waits so far */
} rp_barrier_waiter;

/* Initialises a barrier for `count` threads. */
void rp_barrier_init(rp_barrier *barrier, unsigned count);

/* Waits, without a time limit, until all `count` threads have made this call. When the call
 * returns, the thread sees everything that the other threads wrote before their calls. */
void rp_barrier_meet(rp_barrier *barrier, rp_barrier_waiter *waiter);

#endif
