/* SPDX-License-Identifier: Apache-2.0 */
/* A set of slots that can be drawn from uniformly: the slots in an array without holes, and for
 * each slot its place in it. Removing moves the last one into the hole.
 *
 * The order of the array decides what is drawn, so a cut (cut.h) wants it: while one is open,
 * the first change to a block of the array saves it before.
 *   D1  a block of what the set was at the cut is saved, or as it was then. */
#ifndef RP_TABLE_SELECTOR_DENSE_SET_H
#define RP_TABLE_SELECTOR_DENSE_SET_H

#include <stdatomic.h>

#include "reprise/alloc.h"
#include "util/rng.h"

enum { RP_DENSE_BLOCK = 4096 }; /* slots: 16 KiB */

/* What an open cut keeps of a set; who may read a copy as in rp_slots_cut. */
typedef struct rp_dense_cut {
    size_t count;        /* of the set at the cut */
    uint32_t *copies;    /* of the saved blocks, each in its place */
    atomic_uchar *saved; /* by block */
} rp_dense_cut;

typedef struct rp_dense_set {
    uint32_t *slots;
    uint32_t *places; /* by slot; means nothing for a slot that is not in the set */
    size_t count;
    size_t capacity, place_capacity; /* of the two arrays; the same, unless memory ran out
                                        between them: then there are more places */
    rp_dense_cut *cut;               /* NULL, or open: borrowed */
} rp_dense_set;

/* Room for slots 0 .. slot_count - 1. RP_NO_RESOURCE: the set is as it was. */
RP_NODISCARD rp_status rp_dense_set_reserve(rp_dense_set *d, const rp_allocator *alloc,
                                            size_t slot_count);
void rp_dense_set_deinit(rp_dense_set *d, const rp_allocator *alloc);

/* Removes all slots and, unless a cut is open, gives the memory back. */
void rp_dense_set_clear(rp_dense_set *d, const rp_allocator *alloc);

/* `slot` must not be, or must be, in the set. */
void rp_dense_set_add(rp_dense_set *d, uint32_t slot);
void rp_dense_set_remove(rp_dense_set *d, uint32_t slot);

/* Draws `count` slots, with their probabilities; at most all of them if distinct. The set must
 * not be empty. A distinct draw changes the order of the array, nothing else. Returns how many.
 */
size_t rp_dense_set_pick(rp_dense_set *d, rp_rng *rng, size_t count, bool distinct,
                         uint32_t *slots, double *probabilities);

/* Undoes the last draw of `count` distinct slots; `before` is the generator as it was then.
 * Overwrites `places`, which has room for `count`. */
void rp_dense_set_unpick(rp_dense_set *d, rp_rng before, size_t count, uint32_t *places);

/* True if places and slots agree. */
bool rp_dense_set_check(const rp_dense_set *d);

#endif
