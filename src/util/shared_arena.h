/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that other processes on the same machine are allowed to read. It is a range of
 * addresses, filled from the beginning with parts. Each part is a memfd (an anonymous file) of
 * fixed length.
 *
 *   | part           | part              | ... nothing mapped yet ... |
 *   | run | run | run          | run     |
 *   0                                    file                   reserve
 *
 * An allocated block is a run of whole pages; unused pages form free runs. A run can span
 * parts. The bookkeeping of runs is stored outside the arena. So a reader sees only the
 * contents of blocks, and in particular no address of this process.
 *
 * Each part is sealed when it is made. Its length never changes, so a process that has mapped
 * it never gets SIGBUS, and only the mapping of this process can write to it. The system
 * provides a page when it is first touched, even by a reader. Therefore a part is made only
 * when a block needs it. Its length is at most the largest of three: its first block,
 * `step_bytes`, and an eighth of the length of all parts before it. The seal against writing
 * also forbids giving single pages back to the system. So free pages go back only when the
 * arena is freed; until then, later blocks reuse them.
 *
 * Invariants (rp_shared_arena_check() tests them):
 *
 *   I1  runs follow each other without a gap, from page 0 to the last page of the parts;
 *   I2  the bookkeeping entries of the first and the last page of a run both have the run's
 *       length and whether the run is free;
 *   I3  no two free runs are neighbours;
 *   I4  a free run is in the list of its length, and a used run is in no list;
 *   I5  the bit of a list is set exactly if the list is not empty;
 *   I6  used_pages is the sum of the pages of used runs.
 *
 * Any thread may call these functions. The arena's lock has rank 90 (util/mutex.h) and is held
 * for a few list operations or while a part is added. No other lock is acquired while this lock
 * is held. The owner and each block hold a reference to the arena. */
#ifndef RP_UTIL_SHARED_ARENA_H
#define RP_UTIL_SHARED_ARENA_H

#include "reprise/alloc.h"

/* Smaller blocks come from the fallback allocator, `alloc` of rp_shared_arena_new(). */
enum { RP_SHARED_MIN_BYTES = 32 << 10 };

typedef struct rp_shared_arena rp_shared_arena;

/* `reserve_bytes` bounds the size of the arena (0: half of the machine's memory, at most 64
 * GiB). `step_bytes` is the smallest length of a part (0: 16 MiB). Blocks that do not fit into
 * the arena, and the bookkeeping, are allocated from `alloc`. The caller owns `*out`. Errors:
 * RP_NO_RESOURCE, RP_UNIMPLEMENTED (the system has no memfd, or cannot seal it). */
RP_NODISCARD rp_status rp_shared_arena_new(const rp_allocator *alloc, size_t reserve_bytes,
                                           size_t step_bytes, rp_shared_arena **out,
                                           rp_error *err);
void rp_shared_arena_unref(rp_shared_arena *arena); /* NULL is fine */

/* Returns the allocator of the arena; its ctx is the arena. Blocks stay valid even after the
 * owner has dropped its reference to the arena. */
rp_allocator rp_shared_arena_allocator(rp_shared_arena *arena);

/* From now on, freed memory of the arena is not reused: freed blocks keep their contents, and
 * new blocks come from the fallback allocator. The owner calls this function before it frees
 * blocks that other processes possibly still read. */
void rp_shared_arena_retire(rp_shared_arena *arena);

/* Sets `*offset` to the offset in the arena of the `size` bytes at `data`. Returns false if
 * these bytes are not in the arena. */
bool rp_shared_arena_find(const rp_shared_arena *arena, const void *data, size_t size,
                          uint64_t *offset);

/* Returns the first address of the arena. Sets `*reserve_bytes` to the largest size that the
 * arena can reach. */
const uint8_t *rp_shared_arena_base(const rp_shared_arena *arena, size_t *reserve_bytes);

typedef struct rp_shared_part {
    uint64_t offset, bytes; /* in the arena: each part begins where the previous part ends */
    int fd;                 /* read-only */
} rp_shared_part;

/* Returns the number of parts so far. Takes no lock. */
size_t rp_shared_arena_parts(const rp_shared_arena *arena);
/* Returns a part, borrowed from the arena. `index` must be below rp_shared_arena_parts(). */
const rp_shared_part *rp_shared_arena_part(const rp_shared_arena *arena, size_t index);

typedef struct rp_shared_arena_info {
    size_t reserve_bytes; /* the largest size that the arena can reach */
    size_t file_bytes;    /* sum of the lengths of all parts */
    size_t used_bytes;    /* sum of the sizes of all blocks, in whole pages */
} rp_shared_arena_info;

rp_shared_arena_info rp_shared_arena_look(rp_shared_arena *arena);

/* For tests: returns RP_CORRUPT, with an error text that names the invariant, if an invariant
 * does not hold. */
RP_NODISCARD rp_status rp_shared_arena_check(rp_shared_arena *arena, rp_error *err);

#endif
