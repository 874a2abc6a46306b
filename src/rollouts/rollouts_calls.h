/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that the files of a rollout buffer share. rollouts_inside.h lists these files
 * and explains the structs. An entry is the name of a group, with the group or the reason of
 * its removal. A turn is the state of one group for one consumer: not ready, ready to draw,
 * leased, or acknowledged. A lease is the right of one consumer to use the groups that it drew,
 * for a limited time.
 *
 * The caller must hold the lock of the rollout buffer. Exceptions are functions that make or
 * free an object, and functions whose comments say so. Clang's thread-safety analysis cannot
 * check this rule, because an operation reaches its buffer through rp_rollout_work. Debug
 * builds assert it in rp_rollout_find() and at the start of each operation. */
#ifndef RP_ROLLOUTS_ROLLOUTS_CALLS_H
#define RP_ROLLOUTS_ROLLOUTS_CALLS_H

#include "rollouts/rollouts_inside.h"

/* rollouts_groups.c */

/* Returns the entry with this name, or NULL if there is none. */
rp_rollout_entry *rp_rollout_find(const rp_rollouts *r, rp_string name);

/* Reserves memory in all lists for one more entry and one more group, after which adding them
 * cannot fail. Returns false if memory runs out. */
bool rp_rollout_reserve(rp_rollouts *r);

/* rp_rollout_entry_new() makes an entry without a group, and rp_rollout_group_new() a group
 * without items. The new object is in no list of the buffer. Both return NULL if memory runs
 * out. The free functions accept NULL. rp_rollout_group_cost() returns how many bytes a group
 * without items adds to rp_rollout_info.bytes. */
rp_rollout_entry *rp_rollout_entry_new(const rp_rollouts *r, rp_string name);
void rp_rollout_entry_free(rp_rollouts *r, rp_rollout_entry *entry);
rp_rollout_group *rp_rollout_group_new(const rp_rollouts *r);
void rp_rollout_group_free(rp_rollouts *r, rp_rollout_group *group);
uint64_t rp_rollout_group_cost(const rp_rollouts *r);

/* Adds an entry to the map. */
void rp_rollout_entry_add(rp_rollouts *r, rp_rollout_entry *entry);
/* Adds `group`, which must be empty, to the buffer under the name of `entry`, which must have
 * no group. Sets the group's number to r->next_number. */
void rp_rollout_begin(rp_rollouts *r, rp_rollout_entry *entry, rp_rollout_group *group);
/* Records that the group of an entry has been removed, and why. The buffer keeps at most
 * RP_ROLLOUT_REMEMBERED entries of removed groups: if there are more, it forgets the oldest. */
void rp_rollout_retire(rp_rollout_work *w, rp_rollout_entry *entry, rp_rollout_fate fate);
/* Undoes rp_rollout_retire(). Called before a new group begins under the name of the entry. */
void rp_rollout_recall(rp_rollouts *r, rp_rollout_entry *entry);
/* Removes a group. The group must not be leased. */
void rp_rollout_remove(rp_rollout_work *w, rp_rollout_group *group, rp_rollout_fate fate);

/* Sets the time to live of a group's reservation, and the time `until_ns` at which the
 * reservation ends. If ttl_ns is 0, removes the reservation. */
void rp_rollout_set_time(rp_rollouts *r, rp_rollout_group *group, int64_t ttl_ns,
                         int64_t until_ns);
/* Sets an item of a group: adds a new item, or replaces an item by one with more columns. Takes
 * ownership of the caller's reference to `item`. Returns the replaced item, which the caller
 * must release, or NULL if there was none. */
rp_rollout_stored *rp_rollout_set_item(rp_rollouts *r, rp_rollout_group *group, uint32_t index,
                                       rp_rollout_stored *item);
/* Adds the group to the queue of each consumer for which the group has just become ready: the
 * group has all its items, and the items have all columns that the consumer needs. Returns true
 * if there is such a consumer. */
bool rp_rollout_make_ready(rp_rollouts *r, rp_rollout_group *group);
/* Adds the group to the queue of a consumer. */
void rp_rollout_enqueue(rp_rollouts *r, rp_rollout_group *group, size_t consumer);
/* Reorders all queues after options->order has changed. */
void rp_rollout_reorder(rp_rollouts *r);
/* Record that a consumer's lease of the group begins or ends. */
void rp_rollout_lease_begins(rp_rollouts *r, rp_rollout_group *group);
void rp_rollout_lease_ends(rp_rollouts *r, rp_rollout_group *group);

/* rp_rollout_state() returns the state of a group: a value of rp_rollout_fate for groups that
 * are in the buffer. rp_rollout_staleness_of() returns the staleness of a group: by how many
 * versions `first_version`, the oldest version of its items, is behind the current version. */
rp_rollout_fate rp_rollout_state(const rp_rollout_group *group);
int64_t rp_rollout_staleness_of(const rp_rollouts *r, int64_t first_version);
/* Returns true if the options say that a group whose oldest version is `first_version` must be
 * dropped as stale. */
bool rp_rollout_is_stale(const rp_rollouts *r, int64_t first_version);
/* Drops at most RP_ROLLOUT_STEP stale groups. Sets r->has_stale to whether more are left.
 * Returns the number of groups dropped. */
size_t rp_rollout_drop_stale(rp_rollout_work *w);
/* Sets r->has_stale if a group must be dropped as stale, otherwise clears it. */
void rp_rollout_find_stale(rp_rollouts *r);

/* Returns the group that contains `node` as its member `turn` (its node in the heap
 * r->oldest). */
static inline rp_rollout_group *rp_rollout_group_of_turn(rp_rollout_node *node)
{
    return (rp_rollout_group *)(void *)((char *)node - offsetof(rp_rollout_group, turn));
}

/* rollouts_room.c */

/* The room that an operation needs. */
typedef struct rp_rollout_room {
    bool begins;    /* the operation begins a group */
    uint64_t bytes; /* the bytes that the operation adds; 0 if it adds none or frees bytes */
    /* The group that the operation changes, which must not be evicted. NULL if the operation
     * changes no existing group. */
    const rp_rollout_group *group;
} rp_rollout_room;

/* Returns the largest permitted number of groups that have begun (rp_rollout_info.begun), by
 * the option groups_per_version. Returns UINT64_MAX if there is no limit. */
uint64_t rp_rollout_may_begin(const rp_rollouts *r);
/* Checks whether there is room, or whether evicting groups would make room. Does not evict and
 * does not change the buffer. Returns RP_DEADLINE if the operation has to wait, and sets
 * w->result->waiting to the reason. Returns RP_NO_RESOURCE if waiting would not help. */
RP_NODISCARD rp_status rp_rollout_check_room(rp_rollout_work *w, const rp_rollout_room *room);
/* Evicts groups as necessary to make this room. rp_rollout_check_room() must have returned
 * RP_OK. */
void rp_rollout_make_room(rp_rollout_work *w, const rp_rollout_room *room);
/* Sets w->result->waiting and returns RP_DEADLINE. Also writes the error text, unless the
 * operation is in the list of waiting operations. Such an operation is tried again often, and
 * rp_rollouts_why() writes its text when a caller needs it. */
rp_status rp_rollout_must_wait(rp_rollout_work *w, rp_rollout_waiting waiting);
/* Writes to `err` why an operation has to wait. `consumer` is used only if the operation is a
 * draw. */
void rp_rollout_say_waiting(const rp_rollouts *r, rp_string consumer,
                            const rp_rollout_waiting *why, rp_error *err);

/* rollouts_put.c, rollouts_lease.c and rollouts_options.c. Each function executes one kind of
 * operation and returns the status of the operation. */
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

/* rollouts_options.c: makes a table with each column that a consumer needs. Returns false if
 * memory runs out. */
bool rp_rollout_needs_new(const rp_allocator *alloc, const rp_rollout_options *options,
                          rp_rollout_need **out, size_t *count);
void rp_rollout_needs_free(const rp_allocator *alloc, rp_rollout_need *needs, size_t count);
/* Returns the consumers that need a column, one bit each. */
uint32_t rp_rollout_needed_by(const rp_rollouts *r, rp_string column);

/* rollouts_lease.c */

/* Adds a lease. The caller must have set its groups and the time at which it ends. The groups
 * must not be in the consumer's queue, and the lease's id must be greater than the ids of all
 * other leases. Returns false and changes nothing if memory runs out. */
RP_NODISCARD bool rp_rollout_lease_add(rp_rollouts *r, rp_rollout_lease *lease);
rp_rollout_lease *rp_rollout_lease_new(const rp_rollouts *r, size_t capacity);
void rp_rollout_lease_free(rp_rollouts *r, rp_rollout_lease *lease); /* NULL is fine */
/* Adds a group to a batch (rollouts.h), which must have room. The batch gets its own references
 * to the group's name and items. */
void rp_rollout_batch_add(rp_rollout_batch *batch, rp_rollout_group *group);

/* Sets a cursor, a byte string that is stored with the buffer under a name
 * (reprise/rollouts.h). `data` must not be empty. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollout_set_cursor(rp_rollouts *r, rp_string name, rp_bytes data,
                                             rp_error *err);
void rp_rollout_cursors_free(rp_rollouts *r);

/* rollouts_apply.c: executes one step of a checked operation. A put or an update that adds data
 * takes two calls. The first call changes nothing: it finds that the columns of w->item must be
 * copied, and sets w->needs_copy. The caller must then release the lock, copy the columns, set
 * w->is_copied, acquire the lock, and call again. */
RP_NODISCARD rp_status rp_rollout_execute(rp_rollout_work *w);
/* Recomputes r->image_bytes, an upper bound on the size of an image of the buffer
 * (rollouts_image.h), and updates the sum over all buffers, r->common->image_bytes. Must be
 * called after each change. */
void rp_rollout_count_image(rp_rollouts *r);
/* Frees the objects that an operation has removed or replaced. The caller must not hold the
 * lock. */
void rp_rollout_work_end(rp_rollout_work *w);
/* Checks and prepares an operation. The caller must not hold the lock. Errors: RP_INVALID,
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollout_work_begin(rp_rollout_work *w, rp_rollouts *r,
                                             const rp_rollout_op *op, rp_rollout_result *result,
                                             rp_error *err);

/* rollouts_wait.c: wakes the threads whose operations wait. */
void rp_rollout_wake(rp_rollouts *r);

/* rollouts_image.c: copies a group into the image that is being made, if there is one and it
 * does not contain the group yet. Every function must call rp_rollout_preserve() before it
 * removes a group (then `is_removed` is true) or changes data of a group that is stored in
 * images. */
void rp_rollout_preserve(rp_rollouts *r, rp_rollout_group *group, bool is_removed);

/* rollouts_check.c: returns true if all invariants hold. */
bool rp_rollout_is_valid(const rp_rollouts *r);

#endif
