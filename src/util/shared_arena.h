/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that other processes of this host may read: a range of addresses, filled from its
 * beginning by parts, each of which is a memfd of fixed length.
 *
 *   | part           | part              | ... nothing mapped yet ... |
 *   | run | run | run          | run     |
 *   0                                    file                   reserve
 *
 * Blocks are runs of whole pages, and a run may span parts. All that is known of runs stands
 * beside the arena, never in it: a reader sees what was put into blocks and nothing else, no
 * address of this process.
 *
 * Each part is sealed when it is made. Its length never changes, so that nobody who has mapped
 * it meets SIGBUS and nobody can make it longer, and only our own mapping can write to it. The
 * system provides a page when it is first touched, by a reader too: so a part is made only when
 * blocks need it, and is at most a step or an eighth of those before it, if its first block is
 * no larger. The seal against writing forbids holes as well: free pages wait for the next
 * block, and the system gets them back when the arena goes.
 *
 * The numbered invariants (rp_shared_arena_check() holds them against the runs):
 *
 *   I1  runs follow each other without a gap, from page 0 to the last page of the parts
 *   I2  a run knows its length at its first page, and at its last the same
 *   I3  no two free runs are neighbours
 *   I4  a free run is in the list of its length, a used one in none
 *   I5  a list is empty exactly if its bit says so
 *   I6  the pages of used runs add up to the pages in use
 *
 * Any thread. One lock, rank 90, which is taken last and held for a few list operations, or for
 * adding a part. It lives until its owner and all of its blocks have let go of it. */
#ifndef RP_UTIL_SHARED_ARENA_H
#define RP_UTIL_SHARED_ARENA_H

#include "reprise/alloc.h"

/* Blocks smaller than that come from elsewhere. */
enum { RP_SHARED_MIN_BYTES = 32 << 10 };

typedef struct rp_shared_arena rp_shared_arena;

/* `reserve_bytes` is how large it can become (0: half of the machine's memory, at most 64 GiB),
 * `step_bytes` the length of a part at least (0: 16 MiB). Blocks that it has no room for
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

/* At which offset in the arena `size` bytes at `data` lie. False: not in the arena. */
bool rp_shared_arena_find(const rp_shared_arena *arena, const void *data, size_t size,
                          uint64_t *offset);

/* Where it begins, and how much of it there can be. */
const uint8_t *rp_shared_arena_base(const rp_shared_arena *arena, size_t *reserve_bytes);

typedef struct rp_shared_part {
    uint64_t offset, bytes; /* in the arena: each part begins where the one before it ends */
    int fd;                 /* can only be read */
} rp_shared_part;

/* How many parts there are by now. Any thread, no lock. */
size_t rp_shared_arena_parts(const rp_shared_arena *arena);
/* One of them, borrowed from the arena. */
const rp_shared_part *rp_shared_arena_part(const rp_shared_arena *arena, size_t index);

typedef struct rp_shared_arena_info {
    size_t reserve_bytes, file_bytes; /* at most, and of all parts */
    size_t used_bytes;                /* of blocks, in whole pages */
} rp_shared_arena_info;

rp_shared_arena_info rp_shared_arena_look(rp_shared_arena *arena);

/* For tests: RP_CORRUPT names the invariant that does not hold. */
RP_NODISCARD rp_status rp_shared_arena_check(rp_shared_arena *arena, rp_error *err);

#endif
