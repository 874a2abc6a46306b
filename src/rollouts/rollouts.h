/* SPDX-License-Identifier: Apache-2.0 */
/* A rollout buffer (reprise/rollouts.h), struct rp_rollouts: a deterministic state machine that
 * holds groups of items.
 *
 * rp_rollouts_apply() executes an operation (rollout_op.h). Only operations change the state,
 * and a journal logs the operations that have changed it. To restore the state, recovery loads
 * an image of an earlier state (rollouts_image.h) and executes the logged operations again. An
 * operation that fails or has to wait changes nothing.
 *
 * Long operations are divided into steps. A step holds the lock and drops at most
 * RP_ROLLOUT_STEP groups (rollout_op.h defines stale groups, leases and reservations). If an
 * advance of the version makes more than RP_ROLLOUT_STEP groups stale, the step of the advance
 * drops some of them, and RP_ROLLOUT_EXPIRE operations drop the rest. Until all stale groups
 * are dropped, operations wait, except advance, expire, and operations on existing leases and
 * on cursors. The functions below execute the steps and release the lock between them.
 *
 * Buffers have reference counts. Any thread may make any call. Each buffer has one lock (rank
 * RP_RANK_ROLLOUTS), which is held for one step at a time. Columns are copied, encoded and
 * freed without the lock. Readers do not copy columns: they hold references to the items. Cost:
 * a draw of k groups takes O(k log n) plus O(1) per item. A draw that has to wait takes O(1)
 * and allocates nothing. Other operations take O(log n) per group that they change, plus O(1)
 * per column of an item. */
#ifndef RP_ROLLOUTS_ROLLOUTS_H
#define RP_ROLLOUTS_ROLLOUTS_H

#include "reprise/table.h"
#include "reprise/wait.h"
#include "rollouts/rollout_op.h"

typedef struct rp_rollouts rp_rollouts;

/* A name that several owners share. Immutable. */
typedef struct rp_rollout_name rp_rollout_name;
rp_string rp_rollout_name_text(const rp_rollout_name *name);

/* A group as it was when it was drawn or looked up. */
typedef struct rp_rollout_drawn {
    rp_rollout_name *name;
    rp_rollout_fate state;         /* for rp_rollouts_peek(): state of the group */
    const rp_rollout_item **items; /* group_size pointers; NULL: the item was not put yet */
    int64_t first_version, last_version; /* the oldest and the newest version of the items */
} rp_rollout_drawn;

/* A batch of groups. It has references to the names and items of the groups, which
 * rp_rollout_batch_free() releases. */
typedef struct rp_rollout_batch {
    uint64_t lease;              /* number of the lease; 0: the groups are not leased */
    int64_t version, expires_ns; /* version of the policy; end of the lease */
    size_t group_size, count;    /* items per group; number of groups */
    rp_rollout_drawn *groups;
    rp_allocator alloc; /* private */
    size_t capacity;    /* private */
} rp_rollout_batch;

void rp_rollout_batch_free(rp_rollout_batch *batch); /* NULL is fine */

/* The outcome of an operation that returned RP_OK. */
typedef enum rp_rollout_outcome {
    RP_ROLLOUT_DONE = 0,
    RP_ROLLOUT_REPEATED = 1, /* the operation had been done before */
    RP_ROLLOUT_GONE = 2,     /* the group has been removed; `fate` says why */
} rp_rollout_outcome;

/* The result of an operation. */
typedef struct rp_rollout_result {
    rp_rollout_outcome outcome;
    bool changed;  /* the state has changed, so a journal has to log the operation */
    bool releases; /* waiting operations can possibly proceed now */
    /* There are stale groups that must still be dropped. If the status is RP_DEADLINE as well,
     * the operation can proceed only when they are dropped. To drop them, the caller should
     * apply RP_ROLLOUT_EXPIRE, or call rp_rollouts_apply_once() again. */
    bool goes_on;
    bool has_effect;      /* rp_rollouts_apply_once() has executed the operation itself; only
                             stale groups possibly remain to be dropped */
    uint64_t lsn;         /* LSN (log sequence number) of the operation's record in the log. If
                             the operation has changed nothing: of the last change before it. 0
                             without a log */
    rp_rollout_fate fate; /* for a reserve, abort, put or update: state of the group
                             afterwards */
    int64_t version;      /* the current version of the policy */
    /* If the status is RP_DEADLINE: why the operation would have to wait. */
    rp_rollout_waiting waiting;
    rp_rollout_batch *batch; /* the drawn groups; owned by the caller */
    /* Numbers of groups that the operation removed, by reason. If an advance takes several
     * steps, `stale` includes the groups that other operations drop as stale between these
     * steps. */
    uint64_t acknowledged, stale, evicted, expired;
    uint64_t expired_leases;
    uint64_t expired_lease_groups; /* groups in these leases */
    uint64_t all_stale;            /* groups dropped as stale since the buffer was created */
} rp_rollout_result;

/* A log of operations. The journal implements it. */
typedef struct rp_rollout_log {
    /* Appends an operation that has changed the state. Called with the buffer's lock held, in
     * the order in which the operations took effect. `encoded` is the encoding of the
     * operation, made before the lock was acquired; its field `bad` is set if memory ran out.
     * If `encoded` is NULL, the function must encode the operation itself. Returns the LSN of
     * the record, above 0. Cannot fail. */
    uint64_t (*changed)(struct rp_rollout_log *log, const rp_rollouts *rollouts,
                        const rp_rollout_op *op, const rp_buf *encoded);
    /* Append the record of a buffer that was created or dropped. Called with the lock of the
     * set (rollout_set.h) held. */
    uint64_t (*created)(struct rp_rollout_log *log, const rp_rollouts *rollouts,
                        const rp_rollout_options *options);
    uint64_t (*dropped)(struct rp_rollout_log *log, const rp_rollouts *rollouts);
} rp_rollout_log;

/* Makes a buffer without groups. rollout_set.h adds buffers to a set. `seed` seeds the hash map
 * and has no other effect. The caller must release *out with rp_rollouts_unref(). Errors:
 * RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollouts_new(const rp_allocator *alloc, uint64_t seed, rp_string name,
                                       const rp_rollout_options *options, rp_rollouts **out,
                                       rp_error *err);
rp_rollouts *rp_rollouts_ref(rp_rollouts *rollouts);
void rp_rollouts_unref(rp_rollouts *rollouts); /* NULL is fine */

/* Returns the name of the buffer. The result is valid as long as the buffer exists. */
rp_string rp_rollouts_name(const rp_rollouts *rollouts);

/* Executes an operation in as many steps as necessary. Always writes `*result`. Returns
 * RP_DEADLINE if the operation would have to wait: result->waiting says why, and the error text
 * says what would let it proceed. Returns RP_CANCELLED if the buffer is closed. Returns
 * RP_NO_RESOURCE if memory runs out, or if the operation alone exceeds a bound, so that waiting
 * would not help. Other errors: RP_INVALID, and the statuses that rp_rollout_op_kind lists for
 * the kind of operation. */
RP_NODISCARD rp_status rp_rollouts_apply(rp_rollouts *rollouts, const rp_rollout_op *op,
                                         rp_rollout_result *result, rp_error *err);

enum { RP_ROLLOUT_STEPS = 2 }; /* the most steps of one rp_rollouts_apply_once() */

/* Like rp_rollouts_apply(), but ends after RP_ROLLOUT_STEPS successful steps. If stale groups
 * are left then, returns RP_DEADLINE with result->goes_on set, and the caller must call the
 * function again with the same operation and the same result. The caller must zero-initialise
 * the result before the first call. Once result->has_effect is set, the operation itself is
 * done. Further calls then only drop stale groups, fail only with RP_CANCELLED, and do not read
 * the operation's columns and options. */
RP_NODISCARD rp_status rp_rollouts_apply_once(rp_rollouts *rollouts, const rp_rollout_op *op,
                                              rp_rollout_result *result, rp_error *err);

/* Executes one step: the operation itself, without further RP_ROLLOUT_EXPIRE operations.
 * Recovery uses this function to execute logged operations again. Returns RP_DEADLINE with
 * result->goes_on set if stale groups must be dropped first. */
RP_NODISCARD rp_status rp_rollouts_apply_step(rp_rollouts *rollouts, const rp_rollout_op *op,
                                              rp_rollout_result *result, rp_error *err);

/* Applies one RP_ROLLOUT_EXPIRE if there are stale groups to drop, or if a lease or a
 * reservation has expired. Returns the number of groups removed or returned to their queues,
 * plus the number of leases ended. */
size_t rp_rollouts_expire(rp_rollouts *rollouts, int64_t now_ns);

/* Like rp_rollouts_apply(), but if the operation has to wait, blocks until it can proceed.
 * During the wait, applies RP_ROLLOUT_EXPIRE whenever a lease or reservation expires.
 * op->now_ns must be the time of the call. Returns RP_DEADLINE if the deadline of `wait` passes
 * first, or RP_CANCELLED if `wait` is cancelled or the buffer is closed. */
RP_NODISCARD rp_status rp_rollouts_apply_wait(rp_rollouts *rollouts, const rp_rollout_op *op,
                                              rp_wait wait, rp_rollout_result *result,
                                              rp_error *err);

/* The entry of a waiting operation in the buffer's list of waiting operations. The caller owns
 * the entry and sets `client` and `waiting`; the other fields are private. */
typedef struct rp_rollout_parked {
    struct rp_rollout_parked *prev, *next;
    bool is_draw;
    size_t groups;              /* number of groups that a draw asks for; otherwise 1 */
    rp_string consumer;         /* the consumer of a draw */
    int64_t since_ns, until_ns; /* on the monotonic clock */
    uint64_t client;            /* id of the client's connection; 0: a thread of this process */
    rp_rollout_waiting waiting; /* why the last try had to wait */
} rp_rollout_parked;

/* rp_rollouts_park() adds an operation, which waits until the monotonic time `until_ns`, to the
 * list of waiting operations. rp_rollouts_unpark() removes it. The list borrows the entry and
 * the consumer of `op`. If op->parked points to the entry, each later try of the operation
 * updates the entry's `waiting`. */
void rp_rollouts_park(rp_rollouts *rollouts, rp_rollout_parked *parked, const rp_rollout_op *op,
                      int64_t until_ns);
void rp_rollouts_unpark(rp_rollouts *rollouts, rp_rollout_parked *parked);
/* Writes why an operation in the list waits. Returns RP_DEADLINE. */
rp_status rp_rollouts_why(rp_rollouts *rollouts, const rp_rollout_parked *parked,
                          rp_error *err);
/* Describes up to `capacity` waiting operations, with the draws last. Writes the ids of their
 * connections to `clients`, which may be NULL. A draw is described as waiting for its number of
 * groups times group_size items. Returns the number of all waiting operations. */
size_t rp_rollouts_waiting(rp_rollouts *rollouts, rp_waiting *out, uint64_t *clients,
                           size_t capacity);

/* Counts of the waiting operations. */
typedef struct rp_rollout_sides {
    size_t inserts, draws; /* `inserts`: the waiting operations that are not draws */
    int64_t longest_insert_ns, longest_draw_ns; /* the longest wait so far */
} rp_rollout_sides;
rp_rollout_sides rp_rollouts_count_waiting(rp_rollouts *rollouts);

/* Closes the buffer: operations that wait now and all later operations return RP_CANCELLED. */
void rp_rollouts_close(rp_rollouts *rollouts);

/* Returns the earliest time at which an RP_ROLLOUT_EXPIRE has an effect. Returns 0 if stale
 * groups are left, since RP_ROLLOUT_EXPIRE then has an effect at once. Returns INT64_MAX if
 * nothing can expire. */
int64_t rp_rollouts_next_expiry(rp_rollouts *rollouts);

/* Writes the counts of the buffer. */
void rp_rollouts_get_info(rp_rollouts *rollouts, rp_rollout_info *out);

/* Copies the options and their names into one block, which the caller must release with
 * rp_rollout_options_free() and `alloc`. Returns NULL if memory runs out. */
rp_rollout_options *rp_rollouts_copy_options(rp_rollouts *rollouts, const rp_allocator *alloc);

/* Looks up a group and writes its state, or why it was removed, to `*fate`. If the group is in
 * the buffer and not stale, sets `*out` to a batch with this group, otherwise to NULL. `out`
 * may be NULL. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollouts_peek(rp_rollouts *rollouts, rp_string group,
                                        rp_rollout_fate *fate, rp_rollout_batch **out);

/* Appends the bytes of the cursor (reprise/rollouts.h) with this name. Errors: RP_NOT_FOUND,
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollouts_read_cursor(rp_rollouts *rollouts, rp_string cursor,
                                               rp_buf *out);
/* Writes the name of the cursor number `index`, in the order of the names. Returns false if
 * there is no cursor with this index. */
bool rp_rollouts_cursor_name(rp_rollouts *rollouts, size_t index,
                             char out[RP_ROLLOUT_NAME_BYTES + 1]);

/* Sets the log, which is borrowed; NULL means no log. Resets the LSN of the last change. Must
 * be called before other threads use the buffer. */
void rp_rollouts_set_log(rp_rollouts *rollouts, rp_rollout_log *log);

/* Returns true if the invariants of rollouts_inside.h hold. For tests. */
bool rp_rollouts_check(rp_rollouts *rollouts);

#endif
