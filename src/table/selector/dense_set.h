/* SPDX-License-Identifier: Apache-2.0 */
/* A set of slots (numbers of a table's items, slots.h) from which slots can be drawn uniformly.
 * Selectors (selector.h) use it. The set has an array of its slots without holes, and for each
 * slot the slot's index in this array. When a slot is removed, the last slot of the array moves
 * to the index that becomes free.
 *
 * Draws depend on the order of the array. So a cut (snapshot/cut.h), which is a copy of the
 * state of a table in use at one instant, includes the array. While a cut is open, each block
 * of the array is saved (copied) before its first change.
 *
 * Invariants:
 *   D1  a block that was in use when the open cut was taken is saved, or has not changed since
 *       the cut;
 *   D2  slots[places[s]] == s for every slot s of the set, and count <= capacity. */
#ifndef RP_TABLE_SELECTOR_DENSE_SET_H
#define RP_TABLE_SELECTOR_DENSE_SET_H

#include <stdatomic.h>

#include "reprise/alloc.h"
#include "util/rng.h"

enum { RP_DENSE_BLOCK = 4096 }; /* slots of one block of the array: 16 KiB */

/* The copies that an open cut needs. A thread that has read the entry of a block in `saved`
 * with acquire order may read the block's copy without the table's lock. */
typedef struct rp_dense_cut {
    size_t count;        /* slots in the set at the cut */
    uint32_t *copies;    /* copies of the saved blocks, each at the index of its block */
    atomic_uchar *saved; /* for each block: 1 if it is saved */
} rp_dense_cut;

typedef struct rp_dense_set {
    uint32_t *slots;
    uint32_t *places; /* for each slot of the set its index in `slots` */
    size_t count;
    size_t capacity, place_capacity; /* lengths of the arrays `slots` and `places`. After a
                                        failed allocation, place_capacity can be larger */
    rp_dense_cut *cut;               /* the open cut, borrowed; NULL if there is none */
} rp_dense_set;

/* Makes room for slots 0 .. slot_count - 1. On RP_NO_RESOURCE the set is unchanged. */
RP_NODISCARD rp_status rp_dense_set_reserve(rp_dense_set *d, const rp_allocator *alloc,
                                            size_t slot_count);
void rp_dense_set_deinit(rp_dense_set *d, const rp_allocator *alloc);

/* Removes all slots. If no cut is open, frees the memory. */
void rp_dense_set_clear(rp_dense_set *d, const rp_allocator *alloc);

/* Add a slot, which must not be in the set, and remove a slot, which must be in it. */
void rp_dense_set_add(rp_dense_set *d, uint32_t slot);
void rp_dense_set_remove(rp_dense_set *d, uint32_t slot);

/* Draws `count` slots, and writes them and their probabilities. Returns the number of slots
 * drawn. If `distinct` is true, no slot is drawn twice, so at most all slots of the set are
 * drawn. A draw with `distinct` changes the order of the array and nothing else. The set must
 * not be empty. */
size_t rp_dense_set_pick(rp_dense_set *d, rp_rng *rng, size_t count, bool distinct,
                         uint32_t *slots, double *probabilities);

/* Undoes the last draw, which must have drawn `count` distinct slots. `before` is the state of
 * the random generator before the draw. `places` is scratch memory with room for `count`
 * numbers. */
void rp_dense_set_unpick(rp_dense_set *d, rp_rng before, size_t count, uint32_t *places);

/* Returns true if invariant D2 holds. */
bool rp_dense_set_check(const rp_dense_set *d);

#endif
