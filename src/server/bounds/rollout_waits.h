/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a worker that wait for rollouts, and the expiry of reservations and leases.
 *
 * A call is in the list before its operation is tried for the first time, so that no change is
 * missed: a change that the operation did not see finds the call in the list. A list has the
 * calls of some rollouts, chosen by their address. After a change of rollouts, only the calls
 * of their list are tried again, in the order in which they came. A turn of the loop tries them
 * until it has done RP_ROLLOUT_RETRY_WORK units (server/core/deferral.h).
 *
 * A timer of the loop applies RP_ROLLOUT_EXPIRE to the rollouts whose time it is, until it has
 * done RP_ROLLOUT_RETRY_WORK units; then it is armed again for the rest. It also drops the
 * stale groups of an advance whose call has ended. The calls apply RP_ROLLOUT_EXPIRE too
 * (rp_rollout_waits_expire()), so that no operation finds a lease whose time is over.
 *
 * Invariants:
 *   W1  wait->is_waiting is set exactly while the wait is in the list of its rollouts, and
 *       `count` is the sum of the lengths of the lists;
 *   W2  while calls are tried, `next_try` is the next one, of the list `at`;
 *   W3  `more` is armed, or no call has to be tried. Without memory for the timer, the next
 *       change continues.
 *
 * All functions belong to the worker's thread, except rp_rollout_waits_wake(). */
#ifndef RP_SERVER_BOUNDS_ROLLOUT_WAITS_H
#define RP_SERVER_BOUNDS_ROLLOUT_WAITS_H

#include <stdatomic.h>

#include "net/loop.h"
#include "store/store.h"

enum {
    RP_ROLLOUT_LISTS = 64,            /* a bit of rp_rollout_waits.changed for each */
    RP_ROLLOUT_RETRY_WORK = 16 << 10, /* units */
    RP_ROLLOUT_GROUP_WORK = 4,        /* units for a group that is dropped or expires */
};

/* Embed it in a call. The caller sets the first two fields. */
typedef struct rp_rollout_wait rp_rollout_wait;
struct rp_rollout_wait {
    /* Tries the operation again, and may remove the wait. Returns the units of work. */
    size_t (*retry)(rp_rollout_wait *wait);
    const rp_rollouts *rollouts; /* borrowed; only its address is used */
    bool is_waiting;             /* W1 */
    rp_rollout_wait *prev, *next;
};

typedef struct rp_rollout_waits rp_rollout_waits;
struct rp_rollout_waits {
    rp_loop *loop;
    rp_store *store; /* borrowed */
    /* Adds units of work to those of the turn; may be NULL. The owner sets it. */
    void (*add_work)(rp_rollout_waits *waits, size_t units);
    struct {
        rp_rollout_wait *first, *last;
    } lists[RP_ROLLOUT_LISTS];
    uint64_t pending; /* lists whose calls have to be tried */
    size_t at;        /* W2 */
    rp_rollout_wait *next_try;
    rp_timer more; /* tries more calls in the next turn */
    rp_timer expiry;
    int64_t expiry_ns;  /* by the wall clock; INT64_MAX: not armed */
    size_t next_expiry; /* the index of the rollouts with which the timer begins */
    rp_post wake;
    atomic_uint_fast64_t changed; /* lists that have changed since `wake` ran */
    atomic_size_t count;          /* W1 */
};

void rp_rollout_waits_init(rp_rollout_waits *waits, rp_loop *loop, rp_store *store);
/* No call may wait. */
void rp_rollout_waits_deinit(rp_rollout_waits *waits);

void rp_rollout_waits_add(rp_rollout_waits *waits, rp_rollout_wait *wait);
void rp_rollout_waits_remove(rp_rollout_waits *waits, rp_rollout_wait *wait); /* if it waits */

/* Has the calls that wait for these rollouts tried again; NULL: for any. Any thread; does
 * nothing if no call waits. */
void rp_rollout_waits_wake(rp_rollout_waits *waits, const rp_rollouts *rollouts);

/* Makes sure that the timer is due when reservations or leases of the rollouts expire. Call it
 * after an operation. */
void rp_rollout_waits_watch_expiry(rp_rollout_waits *waits, rp_rollouts *rollouts);

/* Applies one RP_ROLLOUT_EXPIRE if something is over, and adds its work to that of the turn.
 * Returns the units. */
size_t rp_rollout_waits_expire(rp_rollout_waits *waits, rp_rollouts *rollouts);

#endif
