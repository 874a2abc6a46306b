/* SPDX-License-Identifier: Apache-2.0 */
/* Selectors pick slots (numbers of items, slots.h) of a table. A table has two selectors: the
 * sampler picks the items to sample, and the remover picks the items to evict.
 *
 * Selectors have no lock: the table must serialise all calls. Only `reserve` can fail.
 *
 * The picks of a selector depend on its slots and their values. For some kinds they also depend
 * on an order: the order of inserts (fifo, lifo), the order of inserts and updates (heaps), or
 * the order of a dense set (dense_set.h; uniform, and the slots of weight 0 of prioritized). If
 * the slots of a selector are inserted in its order into an empty selector, the new selector
 * makes the same picks as the first. snapshot/restore.c relies on this. */
#ifndef RP_TABLE_SELECTOR_SELECTOR_H
#define RP_TABLE_SELECTOR_SELECTOR_H

#include "reprise/table.h"
#include "table/selector/dense_set.h"
#include "table/selector/power.h"
#include "util/rng.h"

typedef struct rp_selector rp_selector;

typedef struct rp_selector_ops {
    /* Makes room for slots 0 .. slot_count - 1. On RP_NO_RESOURCE nothing has changed. */
    rp_status (*reserve)(rp_selector *s, size_t slot_count);

    /* `insert` adds slots, which must not be in the selector. `update` changes the values of
     * slots, and `remove` removes a slot; these slots must be in the selector. `values` are
     * from rp_selector_values() or rp_selector_weigh(). */
    void (*insert)(rp_selector *s, const uint32_t *slots, const double *values, size_t count);
    void (*update)(rp_selector *s, const uint32_t *slots, const double *values, size_t count);
    void (*remove)(rp_selector *s, uint32_t slot);

    /* Picks `count` slots independently of each other, or, if `distinct`, without repetition.
     * Writes each slot and the probability of its pick. Returns the number of picks, which is
     * less than `count` only if `distinct` is set and there are fewer slots. The picked slots
     * stay in the selector. There must be at least one slot. */
    size_t (*pick)(rp_selector *s, rp_rng *rng, size_t count, bool distinct, uint32_t *slots,
                   double *probabilities);

    /* Undoes the last pick, which must have picked `count` distinct slots. `before` is the
     * state of the random generator before the pick. If the pick is repeated with this state,
     * it gives the same slots. `slots` and `probabilities` are scratch memory with room for
     * `count` elements. The function is NULL if a pick does not affect later picks. */
    void (*unpick)(rp_selector *s, rp_rng before, size_t count, uint32_t *slots,
                   double *probabilities);

    /* Writes up to `count` slots: those that the next picks give if each picked slot is removed
     * before the next pick. Returns their number. Used for prefetching. The function is NULL if
     * the picks cannot be known in advance. */
    size_t (*upcoming)(const rp_selector *s, size_t count, uint32_t *slots);

    /* Prefetches the memory that `insert`, `update` or `remove` of these slots writes. May be
     * NULL. */
    void (*prefetch)(const rp_selector *s, const uint32_t *slots, size_t count);

    /* Returns the sum of all weights. The function is NULL if each slot has weight 1. */
    double (*total)(rp_selector *s);

    /* Returns the dense set on whose order the picks depend. The function is NULL if there is
     * no such set. */
    rp_dense_set *(*dense)(rp_selector *s);

    /* Removes all slots and frees the memory, except for memory that an open cut
     * (snapshot/cut.h) reads. The caller must call `reserve` before the next insert. */
    void (*clear)(rp_selector *s);
    /* Returns true if the invariants hold and the selector has exactly `count` slots. */
    bool (*check)(rp_selector *s, size_t count);
    void (*free)(rp_selector *s);
} rp_selector_ops;

struct rp_selector {
    const rp_selector_ops *ops;
    rp_selector_options options;
    rp_allocator alloc;
    rp_power_fn *power; /* computes weights */
};

/* Makes a selector without slots. The caller owns it. Errors: RP_INVALID (exponent not finite,
 * unknown kind), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_selector_new(const rp_allocator *alloc,
                                       const rp_selector_options *options, rp_selector **out,
                                       rp_error *err);
void rp_selector_free(rp_selector *s); /* NULL is fine */
/* Returns true if selectors with these options make the same picks. The exponent matters only
 * for RP_PRIORITIZED. */
bool rp_selector_options_equal(const rp_selector_options *a, const rp_selector_options *b);

/* Converts priorities to the values that the selector stores: weights for RP_PRIORITIZED, for
 * other kinds the priorities themselves. Reads only constant fields, so it needs no lock.
 * Returns false if a priority is NaN or has no valid weight. `values` must not overlap
 * `priorities`. */
RP_NODISCARD bool rp_selector_values(const rp_selector *s, const double *priorities,
                                     double *values, size_t count);

/* Computes the value of one priority. Returns RP_INVALID, with an error text, in the cases in
 * which rp_selector_values() returns false. */
RP_NODISCARD rp_status rp_selector_weigh(const rp_selector *s, double priority, double *value,
                                         rp_error *err);

/* Each implementation file has one constructor: */
rp_selector *rp_selector_order_new(const rp_allocator *alloc); /* fifo, lifo */
rp_selector *rp_selector_uniform_new(const rp_allocator *alloc);
rp_selector *rp_selector_heap_new(const rp_allocator *alloc); /* min_heap, max_heap */
rp_selector *rp_selector_prioritized_new(const rp_allocator *alloc);

#endif
