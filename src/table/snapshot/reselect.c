/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a table another sampler and remover. */
#include <assert.h>
#include <stdlib.h>

#include "table/snapshot/cut.h"
#include "util/error.h"
#include "util/mem.h"

/* A live slot and its place in the order in which a selector takes it. */
typedef struct place {
    uint64_t rank;
    uint32_t slot;
} place;

static int compare_ranks(const void *a, const void *b)
{
    uint64_t x = ((const place *)a)->rank, y = ((const place *)b)->rank;

    return (x > y) - (x < y);
}

/* Lists the live slots by turn for a heap, by sequence for the others (selector.h). */
static void list_live_locked(const rp_table *t, rp_selector_kind kind, place *out)
    RP_REQUIRES(t->mu)
{
    bool by_turn = kind == RP_MIN_HEAP || kind == RP_MAX_HEAP;
    size_t count = 0;

    for (uint32_t i = 0; i < t->slots.used; i++) {
        const rp_slot *slot = rp_slots_at(&t->slots, i);

        if (slot->state != RP_SLOT_LIVE) continue;
        out[count++] = (place){by_turn ? slot->turn : slot->sequence, i};
    }
    assert(count == t->slots.live);
    qsort(out, count, sizeof *out, compare_ranks);
}

/* Makes a selector with all items of the table. */
static rp_status make_locked(rp_table *t, const rp_selector_options *options, rp_selector **out,
                             rp_error *err) RP_REQUIRES(t->mu)
{
    size_t count = t->slots.live;
    place *places = NULL;
    rp_selector *s = NULL;
    rp_status st = rp_selector_new(&t->alloc, options, &s, err);

    if (st == RP_OK && count > 0) {
        places = rp_alloc_array(&t->alloc, count, sizeof *places);
        if (places == NULL || s->ops->reserve(s, t->slots.capacity) != RP_OK)
            st = rp_fail_memory(err, count * sizeof *places);
        else
            list_live_locked(t, options->kind, places);
    }
    for (size_t i = 0; i < count && st == RP_OK; i++) {
        const rp_slot *slot = rp_slots_at(&t->slots, places[i].slot);
        double value = 0;

        st = rp_selector_weigh(s, slot->priority, &value, NULL);
        if (st != RP_OK)
            st =
                rp_fail(err, RP_PRECONDITION,
                        "table '%.60s': item %llu has priority %g, which a selector of kind %s "
                        "does not take; start with the saved selectors and change or delete it",
                        t->options.name, (unsigned long long)slot->key, slot->priority,
                        rp_selector_name(options->kind));
        else
            s->ops->insert(s, &places[i].slot, &value, 1);
    }
    rp_release(&t->alloc, places, count * sizeof *places);
    if (st == RP_OK)
        *out = s;
    else
        rp_selector_free(s);
    return st;
}

rp_status rp_table_reselect(rp_table *t, const rp_selector_options *sampler,
                            const rp_selector_options *remover, rp_error *err)
{
    rp_selector *s[2] = {NULL, NULL}, *old;
    const char *role = "sampler";
    rp_error why;
    rp_status st;

    rp_mutex_lock(&t->mu);
    assert(!t->being_cut && !t->closed);
    st = make_locked(t, sampler, &s[0], &why);
    if (st == RP_OK) {
        role = "remover";
        st = make_locked(t, remover, &s[1], &why);
    }
    st = rp_table_name_selector(t, role, st, &why, err);
    if (st == RP_OK) {
        old = t->sampler, t->sampler = s[0], s[0] = old;
        old = t->remover, t->remover = s[1], s[1] = old;
        t->options.sampler = *sampler;
        t->options.remover = *remover;
        /* 1 is valid for every selector, and so is the largest priority, which is at least 1.
         */
        if (rp_table_weigh(t, 1, &t->one, NULL) != RP_OK ||
            rp_table_weigh(t, t->max.priority, &t->max, NULL) != RP_OK)
            assert(false);
    }
    rp_selector_free(s[0]);
    rp_selector_free(s[1]);
    rp_mutex_unlock(&t->mu);
    return st;
}
