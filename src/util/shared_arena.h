/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that other processes of this host may read: one memfd, mapped once.
 *
 *   | run | run | run          | ... not in the file yet ... |
 *   0                          file                    reserve
 *
 * Blocks are runs of whole pages. All that is known of them stands beside the arena, never in
 * it: a reader sees what was put into blocks and nothing else, no address of this process. The
 * file grows in steps, so that a reader cannot have more of it made by touching it. It is
 * sealed: it never shrinks, so that nobody who has mapped it meets SIGBUS, and nobody but us
 * can ever write to it or map it so. The second seal forbids holes as well: pages that are free
 * wait for the next block, and the system has them back when the arena goes.
 *
 * The numbered invariants (rp_shared_arena_check() holds them against the runs):
 *
 *   I1  runs follow each other without a gap, from page 0 to the last page of the file
 *   I2  a run knows its length at its first page, and at its last the same
 *   I3  no two free runs are neighbours
 *   I4  a free run is in the list of its length, a used one in none
 *   I5  a list is empty exactly if its bit says so
 *   I6  the pages of used runs add up to the pages in use
 *
 * Any thread. One lock, rank 90, which is taken last and held for a few list operations, or for
 * growing the file. It lives until its owner and all of its blocks have let go of it. */
#ifndef RP_UTIL_SHARED_ARENA_H
#define RP_UTIL_SHARED_ARENA_H

#include "reprise/alloc.h"

/* Blocks smaller than that come from elsewhere. */
enum { RP_SHARED_MIN_BYTES = 32 << 10 };

typedef struct rp_shared_arena rp_shared_arena;

/* `reserve_bytes` is how large it can become (0: half of the machine's memory, at most 64 GiB),
 * `step_bytes` by how much the file grows at least (0: 16 MiB). Blocks that it has no room for
 * come from `alloc`, as does what is known of it. RP_NO_RESOURCE, RP_UNIMPLEMENTED (the system
 * has no such files, or cannot seal them). Returns owned. */
RP_NODISCARD rp_status rp_shared_arena_new(const rp_allocator *alloc, size_t reserve_bytes,
                                           size_t step_bytes, rp_shared_arena **out,
                                           rp_error *err);
void rp_shared_arena_unref(rp_shared_arena *arena); /* NULL is fine */

/* Gives blocks; its ctx is the arena. Blocks may outlive the owner's reference. */
rp_allocator rp_shared_arena_allocator(rp_shared_arena *arena);

/* From now on nothing in it changes: blocks that are given back are not used again, and new
 * ones come from elsewhere. For readers who go on reading when their holds are gone. */
void rp_shared_arena_retire(rp_shared_arena *arena);

/* Where in the file `size` bytes at `data` lie. False: not in the arena. */
bool rp_shared_arena_find(const rp_shared_arena *arena, const void *data, size_t size,
                          uint64_t *offset);

/* Where it begins, and how much of it there can be. */
const uint8_t *rp_shared_arena_base(const rp_shared_arena *arena, size_t *reserve_bytes);

/* A descriptor of the file that can only be read, borrowed. */
int rp_shared_arena_fd(const rp_shared_arena *arena);

typedef struct rp_shared_arena_info {
    size_t reserve_bytes, file_bytes;
    size_t used_bytes; /* of blocks, in whole pages */
} rp_shared_arena_info;

rp_shared_arena_info rp_shared_arena_look(rp_shared_arena *arena);

/* For tests: RP_CORRUPT names the invariant that does not hold. */
RP_NODISCARD rp_status rp_shared_arena_check(rp_shared_arena *arena, rp_error *err);

#endif
