/* SPDX-License-Identifier: Apache-2.0 */
/* A set of slots with uniform draws: an array of slots without holes, and for each slot its
 * index in the array. A removal moves the last slot into the hole.
 *
 * Draws depend on the order of the array, so a cut (cut.h) reads the array: while a cut is
 * open, a copy of a block of the array is saved before its first change.
 *
 * Invariants:
 *   D1  a block that was in use at the cut is saved, or has not changed since;
 *   D2  slots[places[s]] == s for every slot s of the set, and count <= capacity. */
#ifndef RP_TABLE_SELECTOR_DENSE_SET_H
#define RP_TABLE_SELECTOR_DENSE_SET_H

#include <stdatomic.h>

#include "reprise/alloc.h"
#include "util/rng.h"

enum { RP_DENSE_BLOCK = 4096 }; /* slots: 16 KiB */

/* The copies of an open cut. As with rp_slots_cut, a thread that has read `saved` with acquire
 * may read the copy without the lock. */
typedef struct rp_dense_cut {
    size_t count;        /* slots in the set at the cut */
    uint32_t *copies;    /* copies of the saved blocks, each at the index of its block */
    atomic_uchar *saved; /* by block: 1 if it is saved */
} rp_dense_cut;

typedef struct rp_dense_set {
    uint32_t *slots;
    uint32_t *places; /* by slot: its index; undefined for a slot that is not in the set */
    size_t count;
    size_t capacity, place_capacity; /* of the two arrays; equal, unless an allocation failed:
                                        then place_capacity is larger */
    rp_dense_cut *cut;               /* NULL, or open: borrowed */
} rp_dense_set;

/* Makes room for slots 0 .. slot_count - 1. RP_NO_RESOURCE, with the set unchanged. */
RP_NODISCARD rp_status rp_dense_set_reserve(rp_dense_set *d, const rp_allocator *alloc,
                                            size_t slot_count);
void rp_dense_set_deinit(rp_dense_set *d, const rp_allocator *alloc);

/* Removes all slots and, unless a cut is open, frees the memory. */
void rp_dense_set_clear(rp_dense_set *d, const rp_allocator *alloc);

/* Add a slot that is not in the set; remove a slot that is in it. */
void rp_dense_set_add(rp_dense_set *d, uint32_t slot);
void rp_dense_set_remove(rp_dense_set *d, uint32_t slot);

/* Draws `count` slots, with their probabilities; if distinct, at most all of the set. The set
 * must not be empty. A distinct draw changes the order of the array only. Returns the number
 * drawn. */
size_t rp_dense_set_pick(rp_dense_set *d, rp_rng *rng, size_t count, bool distinct,
                         uint32_t *slots, double *probabilities);

/* Undoes the last draw of `count` distinct slots; `before` is the generator before that draw.
 * Overwrites `places`, which has room for `count`. */
void rp_dense_set_unpick(rp_dense_set *d, rp_rng before, size_t count, uint32_t *places);

/* True if D2 holds. */
bool rp_dense_set_check(const rp_dense_set *d);

#endif
