/* SPDX-License-Identifier: Apache-2.0 */
/* A table: items in slots, a map from keys to slots, one selector to sample, one to remove, one
 * rate limiter. This file creates and destroys it and changes single items; table.h lists the
 * other files.
 *
 * Invariants, whenever mu is free:
 *   T1  the map, the sampler and the remover hold exactly the live slots;
 *   T2  live slots <= max_size, unless the limit is soft;
 *   T3  an operation that fails leaves T1 and every counter as they were;
 *   T4  a live slot holds references to its trajectory, and the account counts it once;
 *   T5  limiter.inserts - limiter.deletes is the number of live slots;
 *   T6  the first operation in each queue of parked operations cannot proceed, or a thread is
 *       about to resume it (pump_again);
 *   T7  each queue is a doubly linked list of parked operations. `behind` others each wait
 *       behind one of them, in a list that starts there. Together they are `count`.
 * rp_table_check() tests T1, T2, T4, T5 and T7 and the invariants of slots and selectors. Debug
 * builds test them whenever a lock is released after a change (rp_table_unlock()).
 *
 * A change to several structures reserves, then commits: every allocation is made before the
 * first change. Trajectories are released outside the lock; until then the slot of a removed
 * item is retired.
 *
 * Cost: insert, update and sample are O(log n) with the prioritized selector and the heaps,
 * O(1) otherwise. Batches are processed in passes, each of which prefetches the memory that the
 * next one needs. */
#include "table/table.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "chunk/trajectory.h"
#include "util/error.h"
#include "util/mem.h"

rp_status rp_table_check_options(const rp_table_options *o, rp_error *err)
{
    rp_error why;

    if (o->name == NULL || o->name[0] == '\0')
        return rp_fail(err, RP_INVALID, "a table must have a name");
    if (strlen(o->name) > RP_MAX_TABLE_NAME_BYTES)
        return rp_fail(err, RP_INVALID, "table name of %zu bytes is over %d", strlen(o->name),
                       RP_MAX_TABLE_NAME_BYTES);
    if (o->max_size < 1 || o->max_size > (int64_t)1 << 30)
        return rp_fail(err, RP_INVALID, "table '%s': max_size must be in 1 .. 2^30, got %lld",
                       o->name, (long long)o->max_size);
    if (o->max_times_sampled < 0)
        return rp_fail(err, RP_INVALID, "table '%s': max_times_sampled must be >= 0, got %d",
                       o->name, o->max_times_sampled);
    if (rp_limiter_check(&o->limiter, &why) != RP_OK)
        return rp_fail(err, RP_INVALID, "table '%s': %.180s", o->name, why.text);
    if (o->soft_limit && o->limiter.max_diff < 1e300)
        return rp_fail(err, RP_INVALID,
                       "table '%s': with a soft limit inserts never wait, but the limiter's "
                       "max_diff is %g; use rp_limiter_min_size()",
                       o->name, o->limiter.max_diff);
    return RP_OK;
}

rp_status rp_table_weigh(const rp_table *t, double priority, rp_weighed *out, rp_error *err)
{
    rp_status st;

    out->priority = priority;
    st = rp_selector_weigh(t->sampler, priority, &out->sampler_value, err);
    if (st != RP_OK) return st;
    return rp_selector_weigh(t->remover, priority, &out->remover_value, err);
}

static rp_status copy_name(rp_table *t, rp_error *err)
{
    size_t size = strlen(t->options.name) + 1;
    char *name = rp_alloc(&t->alloc, size);

    if (name == NULL) return rp_fail_memory(err, size);
    memcpy(name, t->options.name, size);
    t->options.name = name;
    return RP_OK;
}

rp_status rp_table_name_selector(const rp_table *t, const char *role, rp_status st,
                                 const rp_error *why, rp_error *err)
{
    if (st == RP_OK) return st;
    return rp_fail(err, st, "table '%.64s': %s: %s", t->options.name, role, why->text);
}

/* No other thread knows the table yet, so no lock is needed. */
static rp_status init_parts(rp_table *t, const rp_table_options *o,
                            rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_error why;
    rp_status st = rp_selector_new(&t->alloc, &o->sampler, &t->sampler, &why);

    if (st != RP_OK) return rp_table_name_selector(t, "sampler", st, &why, err);
    st = rp_selector_new(&t->alloc, &o->remover, &t->remover, &why);
    st = rp_table_name_selector(t, "remover", st, &why, err);
    if (st == RP_OK)
        st = rp_events_init(&t->events, &t->alloc, o->extensions, o->extension_count, err);
    if (st == RP_OK) st = rp_table_weigh(t, 1, &t->one, err);
    if (st == RP_OK) st = copy_name(t, err);
    if (st != RP_OK) return st;
    t->max = t->one;
    return RP_OK;
}

static void free_parts(rp_table *t, bool owns_extensions) RP_NO_THREAD_SAFETY_ANALYSIS
{
    for (uint32_t i = 0; i < t->slots.used; i++)
        if (rp_slots_at(&t->slots, i)->state == RP_SLOT_LIVE)
            rp_account_remove(&t->account, rp_slots_at(&t->slots, i)->trajectory);
    rp_account_settle(&t->account, 0);
    rp_slots_deinit(&t->slots);
    for (size_t i = 0; i < t->retired_count; i++)
        rp_trajectory_unref_many(t->retired[i].trajectory, t->retired[i].references);
    rp_release(&t->alloc, t->retired, t->retired_capacity * sizeof *t->retired);
    rp_map_deinit(&t->keys);
    rp_account_deinit(&t->account);
    rp_selector_free(t->sampler);
    rp_selector_free(t->remover);
    rp_events_deinit(&t->events, &t->alloc, owns_extensions);
    rp_release(&t->alloc, t->picked, t->picked_capacity * sizeof *t->picked);
    rp_release(&t->alloc, t->picked_probability,
               t->picked_capacity * sizeof *t->picked_probability);
    rp_mutex_deinit(&t->mu);
}

rp_status rp_table_new(const rp_allocator *alloc, const rp_table_options *options,
                       const rp_table_env *env, rp_table **out,
                       rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    uint64_t seed = options->seed != 0 ? options->seed : env->seed, hash_seed = seed + 1;
    rp_table *t;
    rp_status st = rp_table_check_options(options, err);

    if (st != RP_OK) return st;
    t = rp_alloc_zero(alloc, sizeof *t);
    if (t == NULL) return rp_fail_memory(err, sizeof *t);
    rp_refcount_init(&t->refs);
    t->alloc = *alloc;
    t->options = *options;
    t->wall_ns = env->wall_ns;
    t->wall_ctx = env->wall_ctx;
    rp_mutex_init(&t->mu, RP_RANK_TABLE);
    rp_slots_init(&t->slots, alloc);
    rp_map_init(&t->keys, alloc, rp_splitmix64(&hash_seed));
    rp_account_init(&t->account, env->budget, env->id, alloc, rp_splitmix64(&hash_seed));
    rp_rate_limiter_init(&t->limiter, &options->limiter);
    rp_rng_init(&t->rng, seed);

    st = init_parts(t, options, err);
    if (st != RP_OK) {
        free_parts(t, false);
        rp_release(alloc, t, sizeof *t);
        return st;
    }
    t->options.extensions = NULL; /* they are in `events` now */
    if (options->signature != NULL) (void)rp_signature_ref(options->signature);
    *out = t;
    return RP_OK;
}

rp_table *rp_table_ref(rp_table *t)
{
    rp_refcount_inc(&t->refs);
    return t;
}

void rp_table_unref(rp_table *t)
{
    rp_allocator alloc;

    if (t == NULL || !rp_refcount_dec(&t->refs)) return;
    assert(t->inserts.count == 0 && t->samples.count == 0 && t->finished == NULL);
    assert(!t->waits_for_bytes && !t->being_cut);
    alloc = t->alloc;
    free_parts(t, true);
    rp_signature_unref(t->options.signature);
    rp_release(&alloc, (char *)t->options.name, strlen(t->options.name) + 1);
    rp_release(&alloc, t, sizeof *t);
}

uint32_t rp_table_find_locked(const rp_table *t, uint64_t key, uint32_t tag)
{
    rp_map_cursor at = rp_map_start(&t->keys, tag);
    uint32_t slot;

    while ((slot = rp_map_next(tag, &at)) != RP_MAP_NONE)
        if (rp_slots_at(&t->slots, slot)->key == key) break;
    return slot;
}

void rp_table_update_max_locked(rp_table *t, const rp_weighed *w)
{
    if (w->priority > t->max.priority && !isinf(w->priority)) t->max = *w;
}

void rp_table_set_priority_locked(rp_table *t, uint32_t slot, const rp_weighed *w)
{
    rp_slot *at = rp_slots_change(&t->slots, slot);

    assert(rp_mutex_is_held(&t->mu) && at->state == RP_SLOT_LIVE);
    at->priority = w->priority;
    at->turn = t->next_turn++;
    t->sampler->ops->update(t->sampler, &slot, &w->sampler_value, 1);
    t->remover->ops->update(t->remover, &slot, &w->remover_value, 1);
    rp_table_update_max_locked(t, w);
}

void rp_table_remove_locked(rp_table *t, uint32_t slot)
{
    rp_slot *at = rp_slots_at(&t->slots, slot);

    assert(rp_mutex_is_held(&t->mu) && at->state == RP_SLOT_LIVE && at->trajectory != NULL);
    rp_map_remove(&t->keys, at->tag, slot);
    t->sampler->ops->remove(t->sampler, slot);
    t->remover->ops->remove(t->remover, slot);
    rp_events_add_locked(t, RP_EVENT_DELETE, at);
    t->removed_chunks += at->trajectory->chunk_count;
    rp_slots_retire(&t->slots, slot);
    t->limiter.deletes++;
}

/* Counting out uses atomics, which drain the processor's store buffer and serialise cache
 * misses: it is faster for all items of a batch in a row than between any two removals. */
void rp_table_count_out_locked(rp_table *t, size_t count)
{
    for (; count > 0 && t->slots.first_uncounted != RP_SLOT_NONE; count--) {
        const rp_slot *slot = rp_slots_at(&t->slots, t->slots.first_uncounted);

        assert(slot->state == RP_SLOT_RETIRED);
        rp_account_remove(&t->account, slot->trajectory);
        t->slots.first_uncounted = slot->next;
    }
}

size_t rp_table_spare_locked(const rp_table *t)
{
    return rp_table_is_dropped(t) ? 0 : rp_slots_spare(&t->slots);
}

rp_status rp_table_reclaim_locked(rp_table *t)
{
    size_t need;

    if (t->slots.retired == 0) return RP_OK;
    need = t->retired_count + t->slots.retired;
    if (need > t->retired_capacity) {
        size_t capacity = need < RP_BLOCK ? RP_BLOCK : need;

        if (!rp_resize_array(&t->alloc, &t->retired, t->retired_capacity, capacity,
                             sizeof *t->retired))
            return RP_NO_RESOURCE;
        t->retired_capacity = capacity;
    }
    rp_table_count_out_locked(t, SIZE_MAX);
    t->retired_count +=
        rp_slots_reclaim(&t->slots, t->retired + t->retired_count, t->slots.retired);
    assert(t->retired_count <= t->retired_capacity && t->slots.retired == 0);
    return RP_OK;
}

void rp_table_empty_indexes_locked(rp_table *t, rp_indexes *spent)
{
    assert(t->keys.count == 0 && !t->being_cut);
    rp_slots_empty(&t->slots, &spent->slots);
    rp_map_init_like(&spent->keys, &t->keys);
    rp_map_take(&spent->keys, &t->keys);
    spent->alloc = t->alloc;
    spent->picked = t->picked;
    spent->picked_probability = t->picked_probability;
    spent->picked_capacity = t->picked_capacity;
    t->picked = NULL;
    t->picked_probability = NULL;
    t->picked_capacity = 0;
    t->sampler->ops->clear(t->sampler);
    t->remover->ops->clear(t->remover);
}

void rp_indexes_free(rp_indexes *spent)
{
    rp_slots_deinit(&spent->slots);
    rp_map_deinit(&spent->keys);
    rp_release(&spent->alloc, spent->picked, spent->picked_capacity * sizeof *spent->picked);
    rp_release(&spent->alloc, spent->picked_probability,
               spent->picked_capacity * sizeof *spent->picked_probability);
}

void rp_table_evict_locked(rp_table *t)
{
    uint32_t slot;
    double probability;

    assert(t->slots.live > 0);
    if (t->remover->ops->upcoming != NULL)
        (void)t->remover->ops->upcoming(t->remover, 1, &slot);
    else
        (void)t->remover->ops->pick(t->remover, &t->rng, 1, false, &slot, &probability);
    rp_table_remove_locked(t, slot);
    t->evictions++;
}

rp_status rp_table_refuse_closed(const rp_table *t, rp_error *err)
{
    return rp_fail(err, RP_CANCELLED, "table '%s' %s", t->options.name,
                   rp_table_is_dropped(t) ? "was dropped" : "is closed");
}
