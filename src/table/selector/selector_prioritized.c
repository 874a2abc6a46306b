/* SPDX-License-Identifier: Apache-2.0 */
/* Prioritized: a sum tree whose leaves are the slots (Schaul et al., 2016), and the set of
 * slots of weight 0, which are drawn, uniformly, only if all weights are 0.
 *
 * Invariant P1: a slot is in `zeros` exactly if it is in the table and its weight is 0. */
#include <assert.h>

#include "table/selector/dense_set.h"
#include "table/selector/selector.h"
#include "table/selector/sumtree.h"
#include "util/mem.h"

enum { DRAWS_AT_ONCE = 256 };

typedef struct prioritized {
    rp_selector base;
    rp_sumtree *tree;
    rp_dense_set zeros;
} prioritized;

static rp_status reserve(rp_selector *s, size_t slot_count)
{
    prioritized *p = (prioritized *)s;

    if (rp_dense_set_reserve(&p->zeros, &s->alloc, slot_count) != RP_OK) return RP_NO_RESOURCE;
    return rp_sumtree_reserve(p->tree, slot_count);
}

static void insert(rp_selector *s, const uint32_t *slots, const double *values, size_t count)
{
    prioritized *p = (prioritized *)s;

    for (size_t i = 0; i < count; i++) {
        assert(rp_sumtree_get(p->tree, slots[i]) == 0 && values[i] >= 0);
        if (values[i] == 0) rp_dense_set_add(&p->zeros, slots[i]);
        rp_sumtree_set_one(p->tree, slots[i], values[i]);
    }
}

/* One slot at a time, as a slot may occur twice. */
static void update_with_zeros(prioritized *p, const uint32_t *slots, const double *values,
                              size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool was_zero = rp_sumtree_get(p->tree, slots[i]) == 0;
        if (was_zero && values[i] != 0) rp_dense_set_remove(&p->zeros, slots[i]);
        if (!was_zero && values[i] == 0) rp_dense_set_add(&p->zeros, slots[i]);
        rp_sumtree_set_one(p->tree, slots[i], values[i]);
    }
}

static void update(rp_selector *s, const uint32_t *slots, const double *values, size_t count)
{
    prioritized *p = (prioritized *)s;
    bool any_zero = p->zeros.count > 0;

    for (size_t i = 0; i < count; i++) any_zero |= values[i] == 0;
    if (any_zero)
        update_with_zeros(p, slots, values, count);
    else
        rp_sumtree_set(p->tree, slots, values, count);
}

static void remove_slot(rp_selector *s, uint32_t slot)
{
    prioritized *p = (prioritized *)s;

    if (rp_sumtree_get(p->tree, slot) == 0)
        rp_dense_set_remove(&p->zeros, slot);
    else
        rp_sumtree_set_one(p->tree, slot, 0);
}

/* Draws slots independently from the tree, whose total must be > 0. */
static void draw(prioritized *p, rp_rng *rng, size_t count, double total, uint32_t *slots)
{
    double targets[DRAWS_AT_ONCE];

    assert(total > 0);
    while (count > 0) {
        size_t n = count < DRAWS_AT_ONCE ? count : DRAWS_AT_ONCE;
        for (size_t i = 0; i < n; i++) targets[i] = rp_rng_unit(rng) * total;
        rp_sumtree_find(p->tree, targets, n, slots);
        slots += n, count -= n;
    }
}

/* Draws in rounds and skips slots that were drawn before, which is equivalent to drawing from
 * the remaining slots. A drawn slot gets weight 0 until all are drawn: so later rounds do not
 * draw it, and the same round recognises it. `probabilities` holds the weights meanwhile. */
static size_t draw_distinct(prioritized *p, rp_rng *rng, size_t count, uint32_t *slots,
                            double *probabilities)
{
    uint32_t drawn[DRAWS_AT_ONCE];
    double total, left;
    size_t n = 0;

    while (n < count && (total = rp_sumtree_total(p->tree)) > 0) {
        size_t round = count - n < DRAWS_AT_ONCE ? count - n : DRAWS_AT_ONCE;

        draw(p, rng, round, total, drawn);
        for (size_t i = 0; i < round; i++) {
            double weight = rp_sumtree_get(p->tree, drawn[i]);
            if (weight == 0) continue;
            rp_sumtree_set_one(p->tree, drawn[i], 0);
            slots[n] = drawn[i];
            probabilities[n++] = weight;
        }
    }
    left = rp_sumtree_total(p->tree);
    rp_sumtree_set(p->tree, slots, probabilities, n);
    for (size_t i = n; i-- > 0;) { /* backwards: sums lose less precision than differences */
        left += probabilities[i];
        probabilities[i] /= left;
    }
    return n;
}

static size_t pick(rp_selector *s, rp_rng *rng, size_t count, bool distinct, uint32_t *slots,
                   double *probabilities)
{
    prioritized *p = (prioritized *)s;
    double total = rp_sumtree_total(p->tree);
    size_t n;

    if (total == 0)
        return rp_dense_set_pick(&p->zeros, rng, count, distinct, slots, probabilities);
    if (!distinct) {
        draw(p, rng, count, total, slots);
        for (size_t i = 0; i < count; i++)
            probabilities[i] = rp_sumtree_get(p->tree, slots[i]) / total;
        return count;
    }
    n = draw_distinct(p, rng, count, slots, probabilities);
    if (n < count && p->zeros.count > 0)
        n += rp_dense_set_pick(&p->zeros, rng, count - n, true, slots + n, probabilities + n);
    return n;
}

/* A pick changes the order of `zeros` only. Draws the other slots again, to get the state of
 * the generator after them. */
static void unpick(rp_selector *s, rp_rng before, size_t count, uint32_t *slots,
                   double *probabilities)
{
    prioritized *p = (prioritized *)s;
    size_t n = 0;

    if (p->zeros.count == 0) return;
    if (rp_sumtree_total(p->tree) > 0)
        n = draw_distinct(p, &before, count, slots, probabilities);
    if (n < count) rp_dense_set_unpick(&p->zeros, before, count - n, slots);
}

static void prefetch(const rp_selector *s, const uint32_t *slots, size_t count)
{
    rp_sumtree_prefetch(((const prioritized *)s)->tree, slots, count);
}

static double total(rp_selector *s)
{
    return rp_sumtree_total(((prioritized *)s)->tree);
}

static rp_dense_set *dense(rp_selector *s)
{
    return &((prioritized *)s)->zeros;
}

static void clear(rp_selector *s)
{
    prioritized *p = (prioritized *)s;
    rp_sumtree *fresh;

    if (rp_sumtree_new(&s->alloc, &fresh) == RP_OK) {
        rp_sumtree_free(p->tree);
        p->tree = fresh;
    } else {
        rp_sumtree_clear(p->tree);
    }
    rp_dense_set_clear(&p->zeros, &s->alloc);
}

static bool check(rp_selector *s, size_t count)
{
    prioritized *p = (prioritized *)s;
    size_t weighty = 0;

    for (uint32_t leaf = 0; leaf < rp_sumtree_capacity(p->tree); leaf++)
        weighty += rp_sumtree_get(p->tree, leaf) > 0;
    for (size_t i = 0; i < p->zeros.count; i++) /* P1 */
        if (rp_sumtree_get(p->tree, p->zeros.slots[i]) != 0) return false;
    return weighty + p->zeros.count == count && rp_dense_set_check(&p->zeros) &&
           rp_sumtree_check(p->tree);
}

static void free_prioritized(rp_selector *s)
{
    prioritized *p = (prioritized *)s;
    rp_allocator alloc = s->alloc;

    rp_sumtree_free(p->tree);
    rp_dense_set_deinit(&p->zeros, &alloc);
    rp_release(&alloc, p, sizeof *p);
}

rp_selector *rp_selector_prioritized_new(const rp_allocator *alloc)
{
    static const rp_selector_ops ops = {
        .reserve = reserve,
        .insert = insert,
        .update = update,
        .remove = remove_slot,
        .pick = pick,
        .unpick = unpick,
        .prefetch = prefetch,
        .total = total,
        .dense = dense,
        .clear = clear,
        .check = check,
        .free = free_prioritized,
    };
    prioritized *p = rp_alloc_zero(alloc, sizeof *p);

    if (p == NULL) return NULL;
    p->base.ops = &ops;
    if (rp_sumtree_new(alloc, &p->tree) != RP_OK) {
        rp_release(alloc, p, sizeof *p);
        return NULL;
    }
    return &p->base;
}
