/* SPDX-License-Identifier: Apache-2.0 */
/* Uniform: a dense set. */
#include "table/selector/dense_set.h"
#include "table/selector/selector.h"
#include "util/mem.h"

typedef struct uniform {
    rp_selector base;
    rp_dense_set set;
} uniform;

static rp_status reserve(rp_selector *s, size_t slot_count)
{
    return rp_dense_set_reserve(&((uniform *)s)->set, &s->alloc, slot_count);
}

static void insert(rp_selector *s, const uint32_t *slots, const double *values, size_t count)
{
    (void)values;
    for (size_t i = 0; i < count; i++) rp_dense_set_add(&((uniform *)s)->set, slots[i]);
}

static void update(rp_selector *s, const uint32_t *slots, const double *values, size_t count)
{
    (void)s, (void)slots, (void)values, (void)count;
}

static void remove_slot(rp_selector *s, uint32_t slot)
{
    rp_dense_set_remove(&((uniform *)s)->set, slot);
}

static size_t pick(rp_selector *s, rp_rng *rng, size_t count, bool distinct, uint32_t *slots,
                   double *probabilities)
{
    return rp_dense_set_pick(&((uniform *)s)->set, rng, count, distinct, slots, probabilities);
}

static void unpick(rp_selector *s, rp_rng before, size_t count, uint32_t *slots,
                   double *probabilities)
{
    (void)probabilities;
    rp_dense_set_unpick(&((uniform *)s)->set, before, count, slots);
}

static rp_dense_set *dense(rp_selector *s)
{
    return &((uniform *)s)->set;
}

static void clear(rp_selector *s)
{
    rp_dense_set_clear(&((uniform *)s)->set, &s->alloc);
}

static bool check(rp_selector *s, size_t count)
{
    const rp_dense_set *set = &((const uniform *)s)->set;
    return set->count == count && rp_dense_set_check(set);
}

static void free_uniform(rp_selector *s)
{
    rp_allocator alloc = s->alloc;

    rp_dense_set_deinit(&((uniform *)s)->set, &alloc);
    rp_release(&alloc, s, sizeof(uniform));
}

rp_selector *rp_selector_uniform_new(const rp_allocator *alloc)
{
    static const rp_selector_ops ops = {
        .reserve = reserve,
        .insert = insert,
        .update = update,
        .remove = remove_slot,
        .pick = pick,
        .unpick = unpick,
        .dense = dense,
        .clear = clear,
        .check = check,
        .free = free_uniform,
    };
    uniform *u = rp_alloc_zero(alloc, sizeof *u);

    if (u == NULL) return NULL;
    u->base.ops = &ops;
    return &u->base;
}
