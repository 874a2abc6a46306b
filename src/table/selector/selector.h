/* SPDX-License-Identifier: Apache-2.0 */
/* Selectors: which of a table's slots to pick next. One interface serves samplers and removers.
 *
 * Selectors work on slot numbers and hash nothing. They hold no lock: the table serialises all
 * calls. Only reserve may fail; the rest is committed. Randomness comes in as an argument.
 *
 * What a selector will pick is decided by the slots and their values, and, for some kinds, by
 * an order: that of inserts (order), that of inserts and updates (heaps), that of a dense set
 * (uniform, and among weights of 0 prioritized). Inserting the slots in that order into an
 * empty selector makes one that picks alike: restore.c leans on it. */
#ifndef RP_TABLE_SELECTOR_SELECTOR_H
#define RP_TABLE_SELECTOR_SELECTOR_H

#include "reprise/table.h"
#include "table/selector/dense_set.h"
#include "table/selector/power.h"
#include "util/rng.h"

typedef struct rp_selector rp_selector;

typedef struct rp_selector_ops {
    /* Room for slots 0 .. slot_count - 1. RP_NO_RESOURCE, with nothing changed. */
    rp_status (*reserve)(rp_selector *s, size_t slot_count);

    /* Adds slots that are not there, changes or removes slots that are. `values` are weighed
     * priorities: rp_selector_weigh(). */
    void (*insert)(rp_selector *s, const uint32_t *slots, const double *values, size_t count);
    void (*update)(rp_selector *s, const uint32_t *slots, const double *values, size_t count);
    void (*remove)(rp_selector *s, uint32_t slot);

    /* Picks `count` slots, independently, or without repetition if `distinct`; writes each and
     * the probability with which it was picked. Returns how many: fewer only if distinct and
     * there are fewer. There must be at least one slot. Removes nothing. */
    size_t (*pick)(rp_selector *s, rp_rng *rng, size_t count, bool distinct, uint32_t *slots,
                   double *probabilities);

    /* Takes back the last pick of `count` distinct slots, with `before`, the generator as it
     * was: the next pick with that one is the same again. Overwrites both arrays, which have
     * room for `count`. NULL if a pick changes nothing that later picks depend on. */
    void (*unpick)(rp_selector *s, rp_rng before, size_t count, uint32_t *slots,
                   double *probabilities);

    /* What the next `count` picks would be if each were removed: for fetching ahead. NULL if
     * nobody can know. */
    size_t (*upcoming)(const rp_selector *s, size_t count, uint32_t *slots);

    /* Asks the processor to fetch what changing these slots will touch. May be NULL. */
    void (*prefetch)(const rp_selector *s, const uint32_t *slots, size_t count);

    /* The sum of all weights. NULL if each slot weighs 1. */
    double (*total)(rp_selector *s);

    /* The set whose order decides what is drawn; NULL if there is none. */
    rp_dense_set *(*dense)(rp_selector *s);

    /* Removes all slots and gives the memory back, but for what an open cut wants. Before the
     * next insert, reserve. */
    void (*clear)(rp_selector *s);
    bool (*check)(rp_selector *s,
                  size_t count); /* invariants, and that it holds `count` slots */
    void (*free)(rp_selector *s);
} rp_selector_ops;

struct rp_selector {
    const rp_selector_ops *ops;
    rp_selector_options options;
    rp_allocator alloc;
    rp_power_fn *power; /* for weights */
};

/* RP_INVALID (exponent not finite, unknown kind), RP_NO_RESOURCE. Returns owned. */
RP_NODISCARD rp_status rp_selector_new(const rp_allocator *alloc,
                                       const rp_selector_options *options, rp_selector **out,
                                       rp_error *err);
void rp_selector_free(rp_selector *s); /* NULL is fine */

/* What priorities are worth to the selector: their weights, or themselves. Pure: reads only
 * what is fixed at birth, so it needs no lock. False if one of them is NaN, or something a
 * weighted selector cannot have. `values` must not overlap `priorities`. */
RP_NODISCARD bool rp_selector_values(const rp_selector *s, const double *priorities,
                                     double *values, size_t count);

/* The same for one, with a sentence: RP_INVALID. */
RP_NODISCARD rp_status rp_selector_weigh(const rp_selector *s, double priority, double *value,
                                         rp_error *err);

/* One constructor per file. */
rp_selector *rp_selector_order_new(const rp_allocator *alloc); /* fifo, lifo */
rp_selector *rp_selector_uniform_new(const rp_allocator *alloc);
rp_selector *rp_selector_heap_new(const rp_allocator *alloc); /* min_heap, max_heap */
rp_selector *rp_selector_prioritized_new(const rp_allocator *alloc);

#endif
