/* SPDX-License-Identifier: Apache-2.0 */
/* A barrier for threads that meet every few microseconds: waits spin, then sleep. */
#ifndef RP_PAL_BARRIER_H
#define RP_PAL_BARRIER_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { RP_CACHE_LINE = 64 };

typedef struct rp_barrier {
    alignas(RP_CACHE_LINE) atomic_uint arrived; /* in this generation */
    alignas(RP_CACHE_LINE) atomic_uint generation;
    atomic_uint sleepers;
    unsigned count; /* threads that meet */
} rp_barrier;

/* What a thread has learnt about its waits. Begins as zeroes. */
typedef struct rp_barrier_waiter {
    int64_t spin_ns; /* that the next wait may spin */
    unsigned waits;
} rp_barrier_waiter;

void rp_barrier_init(rp_barrier *barrier, unsigned count);

/* Waits until `count` threads have called it. What each wrote before is visible to all
 * afterwards. The wait is as long as the others take to arrive. */
void rp_barrier_meet(rp_barrier *barrier, rp_barrier_waiter *waiter);

#endif
