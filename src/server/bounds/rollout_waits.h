/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a worker that wait for a change of rollouts, and the expiry of the rollouts'
 * reservations and leases. Rollouts are a named buffer of groups of items; reprise/rollouts.h
 * defines groups, reservations and leases.
 *
 * A call waits in one of RP_ROLLOUT_LISTS lists. The address of the rp_rollouts for which the
 * call waits selects the list. The call enters the list before its operation is tried for the
 * first time, so that no change is missed: a change that the operation did not see finds the
 * call in the list. After a change of rollouts, the calls of their list are tried again, in the
 * order in which they came. A turn (iteration) of the event loop tries calls until it has done
 * RP_ROLLOUT_RETRY_WORK units of work (server/core/deferral.h).
 *
 * When reservations or leases expire, a timer of the loop applies the operation
 * RP_ROLLOUT_EXPIRE to the rollouts that have them. If that takes more than
 * RP_ROLLOUT_RETRY_WORK units, the timer is armed again for the remaining rollouts. When the
 * version of rollouts advances, groups that are too old must be dropped. If the call that
 * advanced the version ends before it has dropped all of them, the timer drops the rest. Calls
 * apply RP_ROLLOUT_EXPIRE before their operation (rp_rollout_waits_expire()), so that no
 * operation finds an expired lease.
 *
 * Invariants:
 *   W1  wait->is_waiting is set exactly while the wait is in the list of its rollouts. `count`
 *       is the sum of the lengths of the lists;
 *   W2  while calls are tried, `next_try` is the next call to try, in the list `at`;
 *   W3  while calls have to be tried again, the timer `more` is armed. If there is no memory
 *       for the timer, the calls are tried after the next change.
 *
 * All functions but rp_rollout_waits_wake() must be called on the worker's thread. */
#ifndef RP_SERVER_BOUNDS_ROLLOUT_WAITS_H
#define RP_SERVER_BOUNDS_ROLLOUT_WAITS_H

#include <stdatomic.h>

#include "net/loop.h"
#include "store/store.h"

enum {
    RP_ROLLOUT_LISTS = 64,            /* each has a bit in rp_rollout_waits.changed */
    RP_ROLLOUT_RETRY_WORK = 16 << 10, /* units of work */
    RP_ROLLOUT_GROUP_WORK = 4,        /* units for a group that is dropped or expires */
};

/* The wait of a call. Embed it in the struct of the call, and set the first two fields. */
typedef struct rp_rollout_wait rp_rollout_wait;
struct rp_rollout_wait {
    /* Tries the operation again. The function is allowed to remove the wait. Returns the units
     * of work that it did. */
    size_t (*retry)(rp_rollout_wait *wait);
    const rp_rollouts *rollouts; /* borrowed; only its address is used */
    bool is_waiting;             /* invariant W1 */
    rp_rollout_wait *prev, *next;
};

typedef struct rp_rollout_waits rp_rollout_waits;
struct rp_rollout_waits {
    rp_loop *loop;
    rp_store *store; /* borrowed */
    /* Adds `units` to the work that the turn has done (server/core/deferral.h). The owner sets
     * this member, which may be NULL. */
    void (*add_work)(rp_rollout_waits *waits, size_t units);
    struct {
        rp_rollout_wait *first, *last;
    } lists[RP_ROLLOUT_LISTS];
    uint64_t pending; /* bit set of the lists whose calls have to be tried */
    size_t at;        /* invariant W2 */
    rp_rollout_wait *next_try;
    rp_timer more; /* tries more calls in the next turn */
    rp_timer expiry;
    int64_t expiry_ns;  /* time of `expiry` by the wall clock; INT64_MAX: not armed */
    size_t next_expiry; /* index of the rollouts with which the timer continues */
    rp_post wake;
    atomic_uint_fast64_t changed; /* lists to add to `pending`; a bit set */
    atomic_size_t count;          /* invariant W1 */
};

void rp_rollout_waits_init(rp_rollout_waits *waits, rp_loop *loop, rp_store *store);
/* Must not be called while a call waits. */
void rp_rollout_waits_deinit(rp_rollout_waits *waits);

void rp_rollout_waits_add(rp_rollout_waits *waits, rp_rollout_wait *wait);
void rp_rollout_waits_remove(rp_rollout_waits *waits, rp_rollout_wait *wait); /* if it waits */

/* Makes the loop retry the calls that wait for these rollouts. If `rollouts` is NULL, makes the
 * loop retry all waiting calls. Does nothing if no call waits. Any thread may call it. */
void rp_rollout_waits_wake(rp_rollout_waits *waits, const rp_rollouts *rollouts);

/* Makes sure that the timer is due when reservations or leases of the rollouts expire. Must be
 * called after each operation. */
void rp_rollout_waits_watch_expiry(rp_rollout_waits *waits, rp_rollouts *rollouts);

/* If reservations or leases of the rollouts have expired, applies RP_ROLLOUT_EXPIRE once.
 * Returns the units of work that this took, and also adds them to the work of the turn
 * (add_work). */
size_t rp_rollout_waits_expire(rp_rollout_waits *waits, rp_rollouts *rollouts);

#endif
