/* SPDX-License-Identifier: Apache-2.0 */
/* A set of rollout buffers (rollouts.h), which are found by name. Each store has one set.
 *
 * Each buffer has a bound on its bytes, the option max_bytes. The sum of max_bytes of all
 * buffers is at most `most_bytes` of the set. The set checks the sum when a buffer is created
 * or its options change. So an operation on the groups of a buffer depends only on max_bytes of
 * this buffer, not on the bytes in other buffers. During recovery, while logged operations are
 * executed again, most_bytes is UINT64_MAX, so that the set accepts all of them.
 *
 * Any thread may make any call unless a comment says otherwise. One lock (rank
 * RP_RANK_ROLLOUT_SET) guards the list. */
#ifndef RP_ROLLOUTS_ROLLOUT_SET_H
#define RP_ROLLOUTS_ROLLOUT_SET_H

#include "rollouts/rollouts.h"

enum { RP_ROLLOUT_SET_COUNT = 256 }; /* the most buffers of a set */
/* See rp_rollout_set_default_bytes(). */
#define RP_ROLLOUT_SET_BYTES ((uint64_t)8 << 30)

typedef struct rp_rollout_set rp_rollout_set;

/* Returns an empty set, which the caller owns, or NULL if memory runs out. `seed` seeds the
 * hash maps. */
rp_rollout_set *rp_rollout_set_new(const rp_allocator *alloc, uint64_t seed);
/* Closes all buffers and releases the set's references to them. */
void rp_rollout_set_free(rp_rollout_set *set); /* NULL is fine */
/* Closes all buffers: waiting and later operations on them return RP_CANCELLED. */
void rp_rollout_set_close(rp_rollout_set *set);

/* Returns the default of most_bytes: a third of `bytes`, which is the bound on the memory of
 * the store. `bytes` is 0 if the store has no bound. In this case, the default is the smaller
 * of RP_ROLLOUT_SET_BYTES and half of the machine's memory. */
uint64_t rp_rollout_set_default_bytes(uint64_t bytes);
/* Set and get most_bytes. In a new set, most_bytes is rp_rollout_set_default_bytes(0). Existing
 * buffers stay, even if the sum of their max_bytes exceeds the new bound. */
void rp_rollout_set_set_most_bytes(rp_rollout_set *set, uint64_t most_bytes);
uint64_t rp_rollout_set_most_bytes(rp_rollout_set *set);

/* Returns an upper bound on the bytes of the images of all buffers. An image is the serialised
 * state of a buffer (rollouts_image.h). The bound includes 64 bytes of overhead for each item.
 * Takes no lock. */
uint64_t rp_rollout_set_image_bytes(rp_rollout_set *set);

/* Sets the log of all buffers, which is borrowed; NULL means no log. Must be called after
 * recovery and before other threads use the set. */
void rp_rollout_set_set_log(rp_rollout_set *set, rp_rollout_log *log);

/* Sets a function that is called after each operation that possibly lets waiting operations
 * proceed (result.releases). The function is called on the thread of the operation, without a
 * lock, after the threads of this process that wait for the buffer were woken. The caller must
 * set the function before other threads use the set. */
void rp_rollout_set_set_watch(rp_rollout_set *set, void (*watch)(void *ctx, rp_rollouts *r),
                              void *ctx);

/* Creates a buffer. Sets `*out` to a reference that the caller must release, and `*lsn` to the
 * LSN (log sequence number) of the log record. Both pointers may be NULL. Returns
 * RP_NO_RESOURCE if memory runs out, or if RP_ROLLOUT_SET_COUNT or most_bytes would be
 * exceeded. Returns RP_CANCELLED if the set is closed. Other errors: RP_INVALID, RP_EXISTS. */
RP_NODISCARD rp_status rp_rollout_set_create(rp_rollout_set *set, rp_string name,
                                             const rp_rollout_options *options,
                                             rp_rollouts **out, uint64_t *lsn, rp_error *err);
/* Adds a buffer that was loaded from an image, without logging it. The set acquires its own
 * reference. Errors: RP_EXISTS, RP_NO_RESOURCE, RP_CANCELLED. */
RP_NODISCARD rp_status rp_rollout_set_add(rp_rollout_set *set, rp_rollouts *rollouts,
                                          rp_error *err);
/* Returns a reference to the buffer with that name, which the caller must release, or NULL if
 * there is none. */
rp_rollouts *rp_rollout_set_find(rp_rollout_set *set, rp_string name);
/* Closes a buffer and removes it from the set. `*lsn` as in rp_rollout_set_create(). Errors:
 * RP_NOT_FOUND. */
RP_NODISCARD rp_status rp_rollout_set_drop(rp_rollout_set *set, rp_string name, uint64_t *lsn,
                                           rp_error *err);
/* Writes an error text that says that there is no buffer `name` and lists the names of all
 * buffers. Returns RP_NOT_FOUND. */
rp_status rp_rollout_set_missing(rp_rollout_set *set, rp_string name, rp_error *err);
/* Returns true if the set has RP_ROLLOUT_SET_COUNT buffers. */
bool rp_rollout_set_is_full(rp_rollout_set *set);
/* Writes references to all buffers, in the order of their names. The caller must release the
 * references. Returns their number. */
size_t rp_rollout_set_list(rp_rollout_set *set, rp_rollouts *out[RP_ROLLOUT_SET_COUNT]);

#endif
