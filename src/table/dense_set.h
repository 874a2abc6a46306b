/* SPDX-License-Identifier: Apache-2.0 */
/* A set of slots that can be drawn from uniformly: the slots in an array without holes, and for
 * each slot its place in it. Removing moves the last one into the hole. */
#ifndef RP_TABLE_DENSE_SET_H
#define RP_TABLE_DENSE_SET_H

#include "reprise/alloc.h"
#include "util/rng.h"

typedef struct rp_dense_set {
    uint32_t *slots;
    uint32_t *places; /* by slot; means nothing for a slot that is not in the set */
    size_t count, capacity;
} rp_dense_set;

/* Room for slots 0 .. slot_count - 1. RP_NO_RESOURCE, with nothing changed. */
RP_NODISCARD rp_status rp_dense_set_reserve(rp_dense_set *d, const rp_allocator *alloc,
                                            size_t slot_count);
void rp_dense_set_deinit(rp_dense_set *d, const rp_allocator *alloc);

/* `slot` must not be, or must be, in the set. */
void rp_dense_set_add(rp_dense_set *d, uint32_t slot);
void rp_dense_set_remove(rp_dense_set *d, uint32_t slot);

/* Draws `count` slots, with their probabilities; at most all of them if distinct. The set must
 * not be empty. A distinct draw changes the order of the array, nothing else. Returns how many.
 */
size_t rp_dense_set_pick(rp_dense_set *d, rp_rng *rng, size_t count, bool distinct,
                         uint32_t *slots, double *probabilities);

/* True if places and slots agree. */
bool rp_dense_set_check(const rp_dense_set *d);

#endif
