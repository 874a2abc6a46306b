/* SPDX-License-Identifier: Apache-2.0 */
/* A set of rollouts by name, which a store owns.
 *
 * The sum of max_bytes of all rollouts is at most `most_bytes` of the set. So the bytes of one
 * never decide what an operation on another one does, and redoing a log gives the same state.
 *
 * Any thread. One lock (rank RP_RANK_ROLLOUT_SET) for the list. */
#ifndef RP_ROLLOUTS_ROLLOUT_SET_H
#define RP_ROLLOUTS_ROLLOUT_SET_H

#include "rollouts/rollouts.h"

enum { RP_ROLLOUT_SET_COUNT = 256 }; /* the most rollouts of a set */
/* most_bytes of a set whose owner has no bound on its memory, unless the machine is small. */
#define RP_ROLLOUT_SET_BYTES ((uint64_t)8 << 30)

typedef struct rp_rollout_set rp_rollout_set;

/* Returns owned, or NULL if there is no memory. */
rp_rollout_set *rp_rollout_set_new(const rp_allocator *alloc, uint64_t seed);
/* Closes the rollouts and drops the references of the set to them. */
void rp_rollout_set_free(rp_rollout_set *set); /* NULL is fine */
/* Closes all rollouts: all waits and later operations end with RP_CANCELLED. */
void rp_rollout_set_close(rp_rollout_set *set);

/* The default of most_bytes: a third of `bytes`, which bounds the other memory of the owner. 0:
 * there is no bound; then RP_ROLLOUT_SET_BYTES, but at most half of the machine's memory. */
uint64_t rp_rollout_set_default_bytes(uint64_t bytes);
/* Bounds the sum of max_bytes, at first to the default without a bound. Rollouts that exist
 * stay, even if they exceed it. */
void rp_rollout_set_set_most_bytes(rp_rollout_set *set, uint64_t most_bytes);
uint64_t rp_rollout_set_most_bytes(rp_rollout_set *set);

/* An upper bound on the bytes of the images of all rollouts, with 64 bytes more for each item.
 * Any thread, no lock. */
uint64_t rp_rollout_set_image_bytes(rp_rollout_set *set);

/* Sets the log of all rollouts; NULL: none. Before other threads use the set, and after
 * recovery. Borrowed. */
void rp_rollout_set_set_log(rp_rollout_set *set, rp_rollout_log *log);

/* Sets a function that is called after an operation that may release others (result.releases),
 * on the thread of the operation, without a lock, after the calls that wait on this machine
 * were woken. Before other threads use the set. */
void rp_rollout_set_set_watch(rp_rollout_set *set, void (*watch)(void *ctx, rp_rollouts *r),
                              void *ctx);

/* Makes rollouts. `*out` (may be NULL) is a reference that the caller drops, `*lsn` (may be
 * NULL) the LSN of the log record. RP_INVALID, RP_EXISTS, RP_NO_RESOURCE (memory,
 * RP_ROLLOUT_SET_COUNT or most_bytes), RP_CANCELLED (closed). */
RP_NODISCARD rp_status rp_rollout_set_create(rp_rollout_set *set, rp_string name,
                                             const rp_rollout_options *options,
                                             rp_rollouts **out, uint64_t *lsn, rp_error *err);
/* Adds rollouts that were loaded from an image; does not log them. Takes its own reference.
 * RP_EXISTS, RP_NO_RESOURCE, RP_CANCELLED. */
RP_NODISCARD rp_status rp_rollout_set_add(rp_rollout_set *set, rp_rollouts *rollouts,
                                          rp_error *err);
/* Returns a reference that the caller drops; NULL if there are none of that name. */
rp_rollouts *rp_rollout_set_find(rp_rollout_set *set, rp_string name);
/* Closes the rollouts and removes them. RP_NOT_FOUND. */
RP_NODISCARD rp_status rp_rollout_set_drop(rp_rollout_set *set, rp_string name, uint64_t *lsn,
                                           rp_error *err);
/* Returns RP_NOT_FOUND. The error has the name, and those that there are. */
rp_status rp_rollout_set_missing(rp_rollout_set *set, rp_string name, rp_error *err);
/* True if the set has RP_ROLLOUT_SET_COUNT rollouts. */
bool rp_rollout_set_is_full(rp_rollout_set *set);
/* Writes references to all, in the order of their names. Returns their count. */
size_t rp_rollout_set_list(rp_rollout_set *set, rp_rollouts *out[RP_ROLLOUT_SET_COUNT]);

#endif
