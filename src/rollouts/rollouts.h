/* SPDX-License-Identifier: Apache-2.0 */
/* Rollouts (reprise/rollouts.h): a deterministic state machine of groups.
 *
 * rp_rollouts_apply() executes one operation (rollout_op.h). Everything that changes the state
 * is an operation, so a log of the operations that changed it, redone from an image, gives the
 * same state. An operation that fails or has to wait changes nothing.
 *
 * An advance that makes many groups stale drops the first RP_ROLLOUT_STEP of them. Each
 * RP_ROLLOUT_EXPIRE after it drops as many more. Until they are gone, operations that could see
 * a stale group do not begin; those on leases and cursors do. The functions below apply these
 * steps one by one and release the lock in between.
 *
 * Reference counted; any thread. One lock (rank RP_RANK_ROLLOUTS), held for one step.
 * Columns are copied and encoded without the lock, once the operation need not wait, and freed
 * without it; readers share them. A draw of k groups takes O(k log n) and one step for each
 * item; one that has to wait takes O(1) and allocates nothing. Other operations take O(log n)
 * for each group that they change, plus one step for each column of one item. */
#ifndef RP_ROLLOUTS_ROLLOUTS_H
#define RP_ROLLOUTS_ROLLOUTS_H

#include "reprise/wait.h"
#include "rollouts/rollout_op.h"

typedef struct rp_rollouts rp_rollouts;

/* A name that several owners share. Immutable. */
typedef struct rp_rollout_name rp_rollout_name;
rp_string rp_rollout_name_text(const rp_rollout_name *name);

/* A group as it was when it was drawn. */
typedef struct rp_rollout_drawn {
    rp_rollout_name *name;
    rp_rollout_fate state;         /* of rp_rollouts_peek() */
    const rp_rollout_item **items; /* group_size of them; NULL: none yet (rp_rollouts_peek()) */
    int64_t first_version, last_version; /* the oldest and the newest of all items */
} rp_rollout_drawn;

/* Groups with references to their names and items: rp_rollout_batch_free() drops them. */
typedef struct rp_rollout_batch {
    uint64_t lease; /* 0: none */
    int64_t version, expires_ns;
    size_t group_size, count;
    rp_rollout_drawn *groups;
    rp_allocator alloc; /* private, as is the next */
    size_t capacity;
} rp_rollout_batch;

void rp_rollout_batch_free(rp_rollout_batch *batch); /* NULL is fine */

typedef enum rp_rollout_outcome {
    RP_ROLLOUT_DONE = 0,
    RP_ROLLOUT_REPEATED = 1, /* it had been done before */
    RP_ROLLOUT_GONE = 2,     /* the group was removed: `fate` says why */
} rp_rollout_outcome;

typedef struct rp_rollout_result {
    rp_rollout_outcome outcome;
    bool changed;  /* the state: a journal logs the operation */
    bool releases; /* operations that wait may go on now */
    /* Stale groups are left. After RP_DEADLINE they are what the operation waits for: apply
     * RP_ROLLOUT_EXPIRE, or call rp_rollouts_apply_once() again. */
    bool goes_on;
    bool has_effect; /* of rp_rollouts_apply_once(): only the stale groups are left to drop */
    uint64_t lsn;    /* from the log; if nothing changed, that of the last operation. 0: none */
    rp_rollout_fate fate; /* of the group, after a reserve, abort, put or update */
    int64_t version;      /* the current one */
    /* On RP_DEADLINE, why the operation would have to wait. */
    rp_rollout_waiting waiting;
    rp_rollout_batch *batch; /* of a draw; owned by the caller */
    /* Groups that the operation removed. An advance that takes several steps counts all groups
     * that were dropped as stale until none was left, also those that others have dropped. */
    uint64_t acknowledged, stale, evicted, expired;
    uint64_t expired_leases;
    uint64_t expired_lease_groups; /* groups of these leases */
    uint64_t all_stale;            /* dropped as stale since the beginning */
} rp_rollout_result;

/* The log of the operations, which the journal implements. */
typedef struct rp_rollout_log {
    /* Appends an operation that changed the state. Under the lock of the rollouts, in the order
     * of effect. `encoded` has the encoding of a large operation, made before the lock was
     * taken, or is bad for lack of memory; NULL: the function encodes the operation. Returns
     * the LSN of the record, > 0. Cannot fail. */
    uint64_t (*changed)(struct rp_rollout_log *log, const rp_rollouts *rollouts,
                        const rp_rollout_op *op, const rp_buf *encoded);
    /* Logs new and dropped rollouts. Under the lock of the set. */
    uint64_t (*created)(struct rp_rollout_log *log, const rp_rollouts *rollouts,
                        const rp_rollout_options *options);
    uint64_t (*dropped)(struct rp_rollout_log *log, const rp_rollouts *rollouts);
} rp_rollout_log;

/* Makes rollouts without groups, which rollout_set.h adds to a set. `seed` seeds the hash map
 * and has no other effect. Returns owned: drop it with rp_rollouts_unref().
 * RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollouts_new(const rp_allocator *alloc, uint64_t seed, rp_string name,
                                       const rp_rollout_options *options, rp_rollouts **out,
                                       rp_error *err);
rp_rollouts *rp_rollouts_ref(rp_rollouts *rollouts);
void rp_rollouts_unref(rp_rollouts *rollouts); /* NULL is fine */

/* Borrowed, valid as long as the rollouts. */
rp_string rp_rollouts_name(const rp_rollouts *rollouts);

/* Executes an operation, in as many steps as it needs. `*result` is written whatever the status
 * is.
 * RP_DEADLINE: it would have to wait; result->waiting says why, and the text of the error what
 * would release it. RP_CANCELLED: closed. RP_NO_RESOURCE: memory, or a bound that no other
 * operation can lift. RP_INVALID, and the statuses of the kind. */
RP_NODISCARD rp_status rp_rollouts_apply(rp_rollouts *rollouts, const rp_rollout_op *op,
                                         rp_rollout_result *result, rp_error *err);

enum { RP_ROLLOUT_STEPS = 2 }; /* of rp_rollouts_apply_once() */

/* As rp_rollouts_apply(), but drops stale groups in at most RP_ROLLOUT_STEPS steps. If some are
 * left then, returns RP_DEADLINE with result->goes_on: call it again with the same operation
 * and the same result. Zero-initialise the result before the first call. Between the calls,
 * result->has_effect says whether the operation has had its effect: it can then not fail except
 * with RP_CANCELLED, and its columns and options are not used again. */
RP_NODISCARD rp_status rp_rollouts_apply_once(rp_rollouts *rollouts, const rp_rollout_op *op,
                                              rp_rollout_result *result, rp_error *err);

/* Executes one step: the operation as the log has it. For redo. RP_DEADLINE with
 * result->goes_on: stale groups are in its way. */
RP_NODISCARD rp_status rp_rollouts_apply_step(rp_rollouts *rollouts, const rp_rollout_op *op,
                                              rp_rollout_result *result, rp_error *err);

/* Applies one RP_ROLLOUT_EXPIRE if it has an effect at this time. Returns the number of groups
 * and leases that it has removed, dropped or ended. */
size_t rp_rollouts_expire(rp_rollouts *rollouts, int64_t now_ns);

/* As rp_rollouts_apply(), but waits. While it waits, it applies RP_ROLLOUT_EXPIRE when a time
 * is over. op->now_ns is the time of the call. RP_DEADLINE as above, RP_CANCELLED. */
RP_NODISCARD rp_status rp_rollouts_apply_wait(rp_rollouts *rollouts, const rp_rollout_op *op,
                                              rp_wait wait, rp_rollout_result *result,
                                              rp_error *err);

/* All waits, and all later operations, end with RP_CANCELLED. */
void rp_rollouts_close(rp_rollouts *rollouts);

/* The time at which RP_ROLLOUT_EXPIRE next has an effect; 0: now, as stale groups are left;
 * INT64_MAX: none is known. */
int64_t rp_rollouts_next_expiry(rp_rollouts *rollouts);

void rp_rollouts_get_info(rp_rollouts *rollouts, rp_rollout_info *out);

/* Copies the options into one block, which rp_rollout_options_free() frees with `alloc`. It has
 * its own names. NULL if there is no memory. */
rp_rollout_options *rp_rollouts_copy_options(rp_rollouts *rollouts, const rp_allocator *alloc);

/* What has become of a group. `*out` (may be NULL) gets a batch of this group if it is in the
 * buffer, else NULL. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollouts_peek(rp_rollouts *rollouts, rp_string group,
                                        rp_rollout_fate *fate, rp_rollout_batch **out);

/* Appends the bytes of a cursor. RP_NOT_FOUND, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollouts_read_cursor(rp_rollouts *rollouts, rp_string cursor,
                                               rp_buf *out);
/* The name of cursor `index`, in the order of the names. False if there are not as many. */
bool rp_rollouts_cursor_name(rp_rollouts *rollouts, size_t index,
                             char out[RP_ROLLOUT_NAME_BYTES + 1]);

/* Sets the log; NULL: none. Forgets the LSN of the last operation. Before other threads use the
 * rollouts. Borrowed. */
void rp_rollouts_set_log(rp_rollouts *rollouts, rp_rollout_log *log);

/* True if the invariants of rollouts_inside.h hold. For tests. */
bool rp_rollouts_check(rp_rollouts *rollouts);

#endif
