/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a worker that wait for rollouts, and the expiry of reservations and leases.
 *
 * A call is in the list before its operation is tried for the first time, so that no change is
 * missed: a change that the operation did not see finds the call in the list. After a change
 * that may release operations, all calls of the list are tried again, in the order in which
 * they came, RETRIES of them or RETRY_BYTES in a turn of the loop.
 *
 * A timer of the loop applies RP_ROLLOUT_EXPIRE to the rollouts whose time it is. The calls
 * apply it too (rp_rollouts_expire()), so that no call sees a lease whose time is over.
 *
 * Invariants:
 *   W1  wait->is_waiting is set exactly while the wait is in the list, and `count` is the
 *       length of the list;
 *   W2  while calls are tried, `next_try` is the next one of the list.
 *
 * All functions belong to the worker's thread, except rp_rollout_waits_wake(). */
#ifndef RP_SERVER_BOUNDS_ROLLOUT_WAITS_H
#define RP_SERVER_BOUNDS_ROLLOUT_WAITS_H

#include <stdatomic.h>

#include "net/loop.h"
#include "store/store.h"

/* Embed it in a call. The caller sets the first two fields. */
typedef struct rp_rollout_wait rp_rollout_wait;
struct rp_rollout_wait {
    void (*retry)(rp_rollout_wait *wait); /* tries the operation again; may remove the wait */
    size_t bytes;                         /* of the request: the work of a retry */
    bool is_waiting;                      /* W1 */
    rp_rollout_wait *prev, *next;
};

typedef struct rp_rollout_waits {
    rp_loop *loop;
    rp_store *store; /* borrowed */
    rp_rollout_wait *first, *last, *next_try;
    bool again;    /* there was a change since the calls are tried */
    rp_timer more; /* tries more calls in the next turn */
    rp_timer expiry;
    int64_t expiry_ns; /* by the wall clock; INT64_MAX: not armed */
    rp_post changed;
    atomic_bool is_posted;
    atomic_size_t count; /* W1 */
} rp_rollout_waits;

void rp_rollout_waits_init(rp_rollout_waits *waits, rp_loop *loop, rp_store *store);
/* No call may wait. */
void rp_rollout_waits_deinit(rp_rollout_waits *waits);

void rp_rollout_waits_add(rp_rollout_waits *waits, rp_rollout_wait *wait);
void rp_rollout_waits_remove(rp_rollout_waits *waits, rp_rollout_wait *wait); /* if it waits */

/* Has the calls that wait tried again. Any thread; does nothing if no call waits. */
void rp_rollout_waits_wake(rp_rollout_waits *waits);

/* Makes sure that the timer is due when reservations or leases of the rollouts expire. Call it
 * after an operation. */
void rp_rollout_waits_watch_expiry(rp_rollout_waits *waits, rp_rollouts *rollouts);

/* Applies RP_ROLLOUT_EXPIRE if a time is over. Any thread. */
void rp_rollouts_expire(rp_rollouts *rollouts);

#endif
