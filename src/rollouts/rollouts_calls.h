/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that the files of rollouts_inside.h share. They are called with the lock of the
 * rollouts held, except those that make or free an object, and those that say so. Clang's
 * analysis cannot check that, since an operation reaches its rollouts through rp_rollout_work;
 * debug builds assert it in rp_rollout_find() and where an operation begins. */
#ifndef RP_ROLLOUTS_ROLLOUTS_CALLS_H
#define RP_ROLLOUTS_ROLLOUTS_CALLS_H

#include "rollouts/rollouts_inside.h"

/* rollouts_groups.c */

rp_rollout_entry *rp_rollout_find(const rp_rollouts *r, rp_string name);

/* True if memory for one more group, one more entry and one more lease is there: a group can
 * then begin without a failure. */
bool rp_rollout_reserve(rp_rollouts *r);

/* Makes an entry without a group, or a group without items, which are in no list. NULL if there
 * is no memory. The free functions accept NULL. */
rp_rollout_entry *rp_rollout_entry_new(const rp_rollouts *r, rp_string name);
void rp_rollout_entry_free(rp_rollouts *r, rp_rollout_entry *entry);
rp_rollout_group *rp_rollout_group_new(const rp_rollouts *r);
void rp_rollout_group_free(rp_rollouts *r, rp_rollout_group *group);
uint64_t rp_rollout_group_cost(const rp_rollouts *r);

/* Adds an entry to the map. */
void rp_rollout_entry_add(rp_rollouts *r, rp_rollout_entry *entry);
/* Adds a group with the next number to the entry, which has none. */
void rp_rollout_begin(rp_rollouts *r, rp_rollout_entry *entry, rp_rollout_group *group);
/* Makes an entry without a group one of the removed ones; forgets the oldest of them. */
void rp_rollout_retire(rp_rollout_work *w, rp_rollout_entry *entry, rp_rollout_fate fate);
/* Takes an entry out of the removed ones. */
void rp_rollout_recall(rp_rollouts *r, rp_rollout_entry *entry);
/* Removes a group that no consumer leases. */
void rp_rollout_remove(rp_rollout_work *w, rp_rollout_group *group, rp_rollout_fate fate);

/* Sets the reservation of a group; ttl_ns 0: ends it. */
void rp_rollout_set_time(rp_rollouts *r, rp_rollout_group *group, int64_t ttl_ns,
                         int64_t until_ns);
/* Sets an item of a group: a new one, or one with more columns. Takes the reference, and
 * returns the old item. */
rp_rollout_stored *rp_rollout_set_item(rp_rollouts *r, rp_rollout_group *group, uint32_t index,
                                       rp_rollout_stored *item);
/* Gives a number to each turn for which nothing is missing and adds it to its queue. Returns
 * true if there is one. */
bool rp_rollout_make_ready(rp_rollouts *r, rp_rollout_group *group);
/* Adds a turn to its queue. */
void rp_rollout_enqueue(rp_rollouts *r, rp_rollout_group *group, size_t consumer);
/* Sets the keys of all queues, for another order. */
void rp_rollout_reorder(rp_rollouts *r);
/* Adds 1 to or subtracts 1 from the leases of a group. */
void rp_rollout_lease_begins(rp_rollouts *r, rp_rollout_group *group);
void rp_rollout_lease_ends(rp_rollouts *r, rp_rollout_group *group);

rp_rollout_fate rp_rollout_state(const rp_rollout_group *group);
int64_t rp_rollout_staleness_of(const rp_rollouts *r, int64_t first_version);
/* True if RP_ROLLOUT_DROP drops a group with this first version. */
bool rp_rollout_is_stale(const rp_rollouts *r, int64_t first_version);
/* Drops at most RP_ROLLOUT_STEP stale groups, and sets has_stale. Returns their number. */
size_t rp_rollout_drop_stale(rp_rollout_work *w);
/* Sets has_stale. */
void rp_rollout_find_stale(rp_rollouts *r);

static inline rp_rollout_group *rp_rollout_group_of_turn(rp_rollout_node *node)
{
    return (rp_rollout_group *)(void *)((char *)node - offsetof(rp_rollout_group, turn));
}

/* rollouts_room.c */

/* What an operation needs. */
typedef struct rp_rollout_room {
    bool begins;                   /* a group */
    uint64_t bytes;                /* more than now; 0: none, or fewer */
    const rp_rollout_group *group; /* it changes this one, which is not evicted; NULL: none */
} rp_rollout_room;

/* The bound of the limiter. UINT64_MAX: none. */
uint64_t rp_rollout_may_begin(const rp_rollouts *r);
/* RP_OK, RP_DEADLINE (with w->result->waiting), RP_NO_RESOURCE. Changes nothing. */
RP_NODISCARD rp_status rp_rollout_check_room(rp_rollout_work *w, const rp_rollout_room *room);
/* Evicts what has to be evicted, after rp_rollout_check_room() has returned RP_OK. */
void rp_rollout_make_room(rp_rollout_work *w, const rp_rollout_room *room);
/* Sets w->result->waiting and the error. Returns RP_DEADLINE. */
rp_status rp_rollout_must_wait(rp_rollout_work *w, rp_rollout_waiting waiting);

/* The operations; each returns the status of the call. */
RP_NODISCARD rp_status rp_rollout_do_reserve(rp_rollout_work *w);
RP_NODISCARD rp_status rp_rollout_do_abort(rp_rollout_work *w);
RP_NODISCARD rp_status rp_rollout_do_put(rp_rollout_work *w);
RP_NODISCARD rp_status rp_rollout_do_update(rp_rollout_work *w);
RP_NODISCARD rp_status rp_rollout_do_advance(rp_rollout_work *w);
RP_NODISCARD rp_status rp_rollout_do_draw(rp_rollout_work *w);
RP_NODISCARD rp_status rp_rollout_do_ack(rp_rollout_work *w);
RP_NODISCARD rp_status rp_rollout_do_release(rp_rollout_work *w);
RP_NODISCARD rp_status rp_rollout_do_renew(rp_rollout_work *w);
RP_NODISCARD rp_status rp_rollout_do_expire(rp_rollout_work *w);
RP_NODISCARD rp_status rp_rollout_do_cursor(rp_rollout_work *w);
RP_NODISCARD rp_status rp_rollout_do_configure(rp_rollout_work *w);

/* rollouts_options.c: makes the table of needed columns. False if there is no memory. */
bool rp_rollout_needs_new(const rp_allocator *alloc, const rp_rollout_options *options,
                          rp_rollout_need **out, size_t *count);
void rp_rollout_needs_free(const rp_allocator *alloc, rp_rollout_need *needs, size_t count);
/* The consumers that need a column, as bits. */
uint32_t rp_rollout_needed_by(const rp_rollouts *r, rp_string column);

/* rollouts_lease.c */

/* Adds a lease that has its groups, which are in no queue of its consumer, and its time. Its id
 * is above all others. False, with nothing changed, if there is no memory. */
RP_NODISCARD bool rp_rollout_lease_add(rp_rollouts *r, rp_rollout_lease *lease);
rp_rollout_lease *rp_rollout_lease_new(const rp_rollouts *r, size_t capacity);
void rp_rollout_lease_free(rp_rollouts *r, rp_rollout_lease *lease); /* NULL is fine */
/* Adds a group to a batch that has room, with references to its name and its items. */
void rp_rollout_batch_add(rp_rollout_batch *batch, rp_rollout_group *group);

/* Sets a cursor; the data is not empty. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollout_set_cursor(rp_rollouts *r, rp_string name, rp_bytes data,
                                             rp_error *err);
void rp_rollout_cursors_free(rp_rollouts *r);

/* rollouts_apply.c: like rp_rollouts_apply() for an operation that was checked, with the lock
 * held.
 */
RP_NODISCARD rp_status rp_rollout_execute(rp_rollout_work *w);
/* Updates the bytes of the image, and the sum in `common`. After each change. */
void rp_rollout_count_image(rp_rollouts *r);
/* Frees what an operation has left, without the lock. */
void rp_rollout_work_end(rp_rollout_work *w);
/* Makes what is needed before the lock is taken. RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollout_work_begin(rp_rollout_work *w, rp_rollouts *r,
                                             const rp_rollout_op *op, rp_rollout_result *result,
                                             rp_error *err);

/* rollouts_wait.c: wakes the threads that wait. */
void rp_rollout_wake(rp_rollouts *r);

/* rollouts_image.c: call it before a change of what an image has of a group, or the removal of
 * the group: a cut may have to copy it. */
void rp_rollout_preserve(rp_rollouts *r, rp_rollout_group *group, bool is_removed);

/* rollouts_check.c: true if all invariants hold. */
bool rp_rollout_is_valid(const rp_rollouts *r);

#endif
