/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the store with the tables of a dm-reverb checkpoint. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "durable/reverb/reverb_loading.h"
#include "store/store.h"
#include "table/snapshot/cut.h"
#include "util/error.h"
#include "util/mem.h"

/* The source of a table that is being restored. */
typedef struct restoring {
    rp_reverb_loaded_table *t;
    const rp_selector *selectors[2]; /* the sampler and the remover */
} restoring;

static rp_status give_block(void *ctx, size_t block, rp_slot out[RP_SLOTS_PER_BLOCK],
                            rp_error *err)
{
    rp_reverb_loaded_table *t = ((restoring *)ctx)->t;
    size_t first = block * RP_SLOTS_PER_BLOCK;

    (void)err;
    for (size_t i = 0; i < RP_SLOTS_PER_BLOCK; i++) {
        rp_reverb_loaded_item *item = first + i < t->count ? &t->items[first + i] : NULL;

        out[i] = (rp_slot){.next = RP_SLOT_NONE, .state = RP_SLOT_FREE};
        if (item == NULL) continue;
        assert(item->trajectory != NULL); /* B3 */
        out[i].key = item->key;
        out[i].priority = item->priority;
        out[i].trajectory = item->trajectory;
        out[i].inserted_at_ns = item->inserted_at_ns;
        out[i].times_sampled = item->times_sampled;
        out[i].sequence = (first + i) & RP_MAX_SEQUENCE;
        out[i].turn = first + i;
        out[i].state = RP_SLOT_LIVE;
        item->trajectory = NULL; /* the table owns it now */
    }
    return RP_OK;
}

/* True if an item is in the dense set of a selector. */
static bool in_set(const rp_selector *selector, double priority)
{
    double value;

    if (selector->options.kind == RP_UNIFORM) return true;
    return selector->options.kind == RP_PRIORITIZED &&
           rp_selector_values(selector, &priority, &value, 1) && value == 0;
}

static rp_status give_set(void *ctx, int which, uint32_t *out, size_t count, rp_error *err)
{
    const restoring *r = ctx;
    size_t n = 0;

    for (size_t i = 0; i < r->t->count && n < count; i++)
        if (in_set(r->selectors[which], r->t->items[i].priority)) out[n++] = (uint32_t)i;
    return n == count ? RP_OK
                      : rp_fail(err, RP_INTERNAL,
                                "a selector gave other values than at the first call");
}

static void fill_state(const restoring *r, const rp_table_options *options, const rp_rng *rng,
                       rp_table_state *out)
{
    const rp_reverb_loaded_table *t = r->t;

    *out = (rp_table_state){
        .options = *options,
        .rng = *rng,
        .max_priority = 1,
        .unique_samples = t->header.unique_samples,
        .deleted_episodes = t->header.deleted_episodes,
        .next_sequence = t->count,
        .next_turn = t->count,
        .slot_capacity =
            (t->count + RP_SLOTS_PER_BLOCK - 1) / RP_SLOTS_PER_BLOCK * RP_SLOTS_PER_BLOCK,
        .slots_used = t->count,
        .live = t->count,
        .first_free = RP_SLOT_NONE,
    };
    out->options.limiter = t->header.limiter;
    out->options.max_size = t->header.max_size;
    out->options.max_times_sampled = t->header.max_times_sampled;
    rp_rate_limiter_init(&out->limiter, &t->header.limiter);
    out->limiter.inserts = t->header.inserts;
    out->limiter.samples = t->header.samples;
    /* inserts - deletes must be the number of items, which dm-reverb does not ensure. */
    out->limiter.deletes = t->header.inserts >= (int64_t)t->count
                               ? t->header.inserts - (int64_t)t->count
                               : t->header.deletes;
    for (size_t i = 0; i < t->count; i++) {
        const rp_reverb_loaded_item *item = &t->items[i];

        if (item->priority > out->max_priority && !isinf(item->priority))
            out->max_priority = item->priority;
        if (item->times_sampled >= t->header.max_times_sampled) out->times_altered = true;
        for (int which = 0; which < 2; which++)
            out->set_counts[which] += in_set(r->selectors[which], item->priority);
    }
    if (t->header.max_times_sampled == 0) out->times_altered = false;
    assert(out->set_counts[0] <= out->live && out->set_counts[1] <= out->live);
    assert(out->slots_used <= out->slot_capacity);
}

/* Finds the table, or creates it. */
static rp_status take_table(rp_reverb_loading *l, rp_reverb_loaded_table *t, rp_error *err)
{
    const rp_table_options options = {
        .name = t->name,
        .sampler = t->header.sampler,
        .remover = t->header.remover,
        .limiter = t->header.limiter,
        .max_size = t->header.max_size,
        .max_times_sampled = t->header.max_times_sampled,
        .signature = t->signature,
    };
    rp_string name = {t->name, strlen(t->name)};
    rp_status st;

    t->table = rp_store_find_table(l->store, name);
    if (t->table == NULL) {
        st = rp_store_add_table(l->store, &options, &t->table, err);
        if (st != RP_OK) return rp_wire_blame_peer(st, err);
        (void)rp_table_ref(t->table);
        t->made = true;
    }
    if (!rp_selector_options_equal(&t->table->options.sampler, &t->header.sampler) ||
        !rp_selector_options_equal(&t->table->options.remover, &t->header.remover))
        return rp_fail(err, RP_PRECONDITION,
                       "table '%.64s' has another sampler or remover than in the checkpoint",
                       t->name);
    return RP_OK;
}

static rp_status restore_table(rp_reverb_loading *l, rp_reverb_loaded_table *t, rp_error *err)
{
    restoring r = {.t = t};
    rp_restore_source source = {give_block, give_set, &r};
    rp_table_options options;
    rp_table_state state;
    rp_rng rng;
    rp_status st = take_table(l, t, err);

    if (st != RP_OK) return st;
    assert(t->table != NULL && t->count <= t->capacity); /* B1 */
    rp_mutex_lock(&t->table->mu);
    r.selectors[0] = t->table->sampler;
    r.selectors[1] = t->table->remover;
    options = t->table->options;
    rng = t->table->rng;
    rp_mutex_unlock(&t->table->mu);
    fill_state(&r, &options, &rng, &state);
    st = rp_table_restore(t->table, &state, &source, err);
    t->restored = st == RP_OK;
    return st;
}

/* Undoes the changes to the store. */
static void undo(rp_reverb_loading *l)
{
    for (size_t i = l->table_count; i-- > 0;) {
        rp_reverb_loaded_table *t = &l->tables[i];
        rp_string name = {t->name, strlen(t->name)};
        rp_status st = RP_OK;

        if (t->made)
            st = rp_store_drop_table(l->store, name, NULL);
        else if (t->restored) /* it was new and empty before */
            st = rp_table_reset(t->table, NULL);
        (void)st; /* fails only if the store was closed meanwhile */
    }
}

rp_status rp_reverb_fill_store(rp_reverb_loading *l, rp_error *err)
{
    rp_status st = RP_OK;

    for (size_t i = 0; st == RP_OK && i < l->table_count; i++)
        st = restore_table(l, &l->tables[i], err);
    if (st != RP_OK) undo(l);
    return st;
}
