/* SPDX-License-Identifier: Apache-2.0 */
/* A table: items in slots, a map from keys to slots, one selector to sample, one to remove, one
 * rate limiter. This file makes and frees it, changes single items and finds them by key;
 * table.h says where the rest is.
 *
 * Invariants, whenever mu is free:
 *   T1  the map, the sampler and the remover hold exactly the live slots;
 *   T2  live slots <= max_size, unless the limit is soft;
 *   T3  an operation that fails leaves T1 and every counter as they were;
 *   T4  a live slot holds references to its trajectory, and the account counts it once;
 *   T5  limiter.inserts - limiter.deletes is the number of live slots;
 *   T6  the first operation in each queue of parked ones cannot go ahead, or a thread is about
 * to
 *       resume it (pump_again).
 * rp_table_check() looks at T1, T2, T4, T5 and at the selectors' own invariants.
 *
 * Multi-structure changes are reserve, then commit: every allocation is made before the first
 * change. Trajectories are let go outside the lock (L2): a removed item stays in its slot,
 * dead, until then.
 *
 * Cost: insert, update and sample are O(log n) with the prioritized selector and the heaps,
 * O(1) otherwise. Batches are worked through in passes, each of which fetches what the next one
 * needs. */
#include "table/table_log.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "chunk/trajectory.h"
#include "util/error.h"
#include "util/mem.h"

static_assert((int)RP_BLOCK <= (int)RP_EVENTS_AT_ONCE,
              "updates are told of after the whole block is done");

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

/* Nobody else knows the table yet, so there is nothing to lock. */
static rp_status init_parts(rp_table *t, const rp_table_options *o,
                            rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_status st = rp_selector_new(&t->alloc, &o->sampler, &t->sampler, err);

    if (st == RP_OK) st = rp_selector_new(&t->alloc, &o->remover, &t->remover, err);
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
    for (size_t i = 0; i < t->grave_count; i++)
        rp_trajectory_unref_many(t->grave[i].trajectory, t->grave[i].references);
    rp_release(&t->alloc, t->grave, t->grave_capacity * sizeof *t->grave);
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
                       const rp_table_birth *birth, rp_table **out,
                       rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    uint64_t seed = options->seed != 0 ? options->seed : birth->seed, hash_seed = seed + 1;
    rp_table *t;
    rp_status st = rp_table_check_options(options, err);

    if (st != RP_OK) return st;
    t = rp_alloc_zero(alloc, sizeof *t);
    if (t == NULL) return rp_fail_memory(err, sizeof *t);
    rp_refcount_init(&t->refs);
    t->alloc = *alloc;
    t->options = *options;
    t->wall_ns = birth->wall_ns;
    t->wall_ctx = birth->wall_ctx;
    rp_mutex_init(&t->mu, RP_RANK_TABLE);
    rp_slots_init(&t->slots, alloc);
    rp_map_init(&t->keys, alloc, rp_splitmix64(&hash_seed));
    rp_account_init(&t->account, birth->budget, birth->id, alloc, rp_splitmix64(&hash_seed));
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

void rp_table_note_priority_locked(rp_table *t, const rp_weighed *w)
{
    if (w->priority > t->max.priority && !isinf(w->priority)) t->max = *w;
}

void rp_table_set_priority_locked(rp_table *t, uint32_t slot, const rp_weighed *w)
{
    rp_slot *at = rp_slots_change(&t->slots, slot);

    at->priority = w->priority;
    at->turn = t->next_turn++;
    t->sampler->ops->update(t->sampler, &slot, &w->sampler_value, 1);
    t->remover->ops->update(t->remover, &slot, &w->remover_value, 1);
    rp_table_note_priority_locked(t, w);
}

void rp_table_remove_locked(rp_table *t, uint32_t slot)
{
    rp_slot *at = rp_slots_at(&t->slots, slot);

    rp_map_remove(&t->keys, at->tag, slot);
    t->sampler->ops->remove(t->sampler, slot);
    t->remover->ops->remove(t->remover, slot);
    rp_events_add_locked(t, RP_EVENT_DELETE, at);
    t->removed_chunks += at->trajectory->chunk_count;
    rp_slots_bury(&t->slots, slot);
    t->limiter.deletes++;
}

/* Atomics drain the processor's store buffer and end its overlapping of misses: better all of a
 * batch in a row than one between any two removals. */
void rp_table_count_out_locked(rp_table *t, size_t count)
{
    for (; count > 0 && t->slots.first_uncounted != RP_SLOT_NONE; count--) {
        const rp_slot *slot = rp_slots_at(&t->slots, t->slots.first_uncounted);

        rp_account_remove(&t->account, slot->trajectory);
        t->slots.first_uncounted = slot->next;
    }
}

size_t rp_table_spare_locked(const rp_table *t)
{
    return rp_table_is_dropped(t) ? 0 : rp_slots_spare(&t->slots);
}

rp_status rp_table_exhume_locked(rp_table *t)
{
    size_t need;

    if (t->slots.dead == 0) return RP_OK;
    need = t->grave_count + t->slots.dead;
    if (need > t->grave_capacity) {
        size_t capacity = need < RP_BLOCK ? RP_BLOCK : need;

        if (!rp_resize_array(&t->alloc, &t->grave, t->grave_capacity, capacity,
                             sizeof *t->grave))
            return RP_NO_RESOURCE;
        t->grave_capacity = capacity;
    }
    rp_table_count_out_locked(t, SIZE_MAX);
    t->grave_count += rp_slots_exhume(&t->slots, t->grave + t->grave_count, t->slots.dead);
    return RP_OK;
}

void rp_table_empty_indexes_locked(rp_table *t, rp_indexes *spent)
{
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

/* Finds the slots of up to RP_BLOCK keys: fetches the slots, then compares. */
static void find_block_locked(const rp_table *t, const uint32_t *tags, const uint64_t *keys,
                              size_t count, uint32_t *slots) RP_REQUIRES(t->mu)
{
    for (size_t i = 0; i < count; i++) {
        rp_map_cursor at = rp_map_start(&t->keys, tags[i]);
        slots[i] = rp_map_next(tags[i], &at); /* almost surely the right one */
        if (slots[i] != RP_MAP_NONE) __builtin_prefetch(rp_slots_at(&t->slots, slots[i]), 1);
    }
    for (size_t i = 0; i < count; i++)
        if (slots[i] != RP_MAP_NONE && rp_slots_at(&t->slots, slots[i])->key != keys[i])
            slots[i] = rp_table_find_locked(t, keys[i], tags[i]);
}

/* Hashes keys and fetches the map's lines, both before the lock is taken. */
static void set_tags(const rp_table *t, const uint64_t *keys, size_t count, uint32_t *tags)
{
    for (size_t i = 0; i < count; i++) {
        tags[i] = rp_map_tag(&t->keys, keys[i]);
        rp_map_prefetch_unlocked(&t->keys, tags[i]);
    }
}

typedef struct update_block {
    uint64_t keys[RP_BLOCK];
    uint32_t tags[RP_BLOCK], slots[RP_BLOCK];
    double priorities[RP_BLOCK], sampler_values[RP_BLOCK], remover_values[RP_BLOCK];
} update_block;

static rp_status weigh_block(const rp_table *t, const rp_update *updates, size_t count,
                             update_block *b, rp_error *err)
{
    for (size_t i = 0; i < count; i++) {
        b->keys[i] = updates[i].key;
        b->priorities[i] = updates[i].priority;
        b->tags[i] = rp_map_tag(&t->keys, updates[i].key);
        rp_map_prefetch_unlocked(&t->keys, b->tags[i]);
    }
    if (rp_selector_values(t->sampler, b->priorities, b->sampler_values, count) &&
        rp_selector_values(t->remover, b->priorities, b->remover_values, count))
        return RP_OK;
    for (size_t i = 0; i < count; i++) {
        rp_weighed ignored;
        rp_error why;

        if (rp_table_weigh(t, updates[i].priority, &ignored, &why) != RP_OK)
            return rp_fail(err, RP_INVALID, "table '%.60s': key %llu: %.120s", t->options.name,
                           (unsigned long long)updates[i].key, why.text);
    }
    return RP_INTERNAL; /* one of them was bad a moment ago */
}

/* Applies a block; returns how many keys were found. */
static size_t update_block_locked(rp_table *t, update_block *b, size_t count) RP_REQUIRES(t->mu)
{
    size_t n = 0;

    find_block_locked(t, b->tags, b->keys, count, b->slots);
    for (size_t i = 0; i < count; i++) { /* close the gaps that unknown keys leave */
        if (b->slots[i] == RP_MAP_NONE) continue;
        b->slots[n] = b->slots[i];
        b->keys[n] = b->keys[i];
        b->priorities[n] = b->priorities[i];
        b->sampler_values[n] = b->sampler_values[i];
        b->remover_values[n] = b->remover_values[i];
        n++;
    }
    if (t->sampler->ops->prefetch != NULL) t->sampler->ops->prefetch(t->sampler, b->slots, n);
    for (size_t i = 0; i < n; i++) {
        rp_slot *slot = rp_slots_change(&t->slots, b->slots[i]);
        rp_weighed w = {b->priorities[i], b->sampler_values[i], b->remover_values[i]};

        slot->priority = w.priority;
        slot->turn = t->next_turn++;
        rp_table_note_priority_locked(t, &w);
        rp_events_add_locked(t, RP_EVENT_UPDATE, slot);
    }
    t->sampler->ops->update(t->sampler, b->slots, b->sampler_values, n);
    t->remover->ops->update(t->remover, b->slots, b->remover_values, n);
    t->updates += (int64_t)n;
    return n;
}

static void tell_updates_locked(rp_table *t, const update_block *b, size_t count)
    RP_REQUIRES(t->mu)
{
    rp_update updates[RP_BLOCK];
    rp_change change = {.kind = RP_CHANGED_UPDATE, .updates = updates, .count = count};

    for (size_t i = 0; i < count; i++) updates[i] = (rp_update){b->keys[i], b->priorities[i]};
    if (count > 0) rp_tell_locked(t, &change);
}

static size_t update_and_tell_locked(rp_table *t, update_block *b, size_t count)
    RP_REQUIRES(t->mu)
{
    size_t n = update_block_locked(t, b, count);

    if (rp_table_log_of(t) != NULL) tell_updates_locked(t, b, n);
    return n;
}

rp_status rp_table_update_logged(rp_table *t, const rp_update *updates, size_t count,
                                 size_t *found, uint64_t *lsn, rp_error *err)
{
    update_block block;
    size_t n = 0, in_all = 0;
    rp_status st = RP_OK;

    *lsn = 0;
    if (found != NULL) *found = 0;
    for (size_t i = 0; count > RP_BLOCK && i < count;
         i += n) { /* check all before changing any */
        n = count - i < RP_BLOCK ? count - i : RP_BLOCK;
        st = weigh_block(t, updates + i, n, &block, err);
        if (st != RP_OK) return st;
    }
    for (size_t i = 0; i < count; i += n) {
        n = count - i < RP_BLOCK ? count - i : RP_BLOCK;
        st = weigh_block(t, updates + i, n, &block, err);
        if (st != RP_OK) return st;
        rp_mutex_lock(&t->mu);
        if (t->closed)
            st = rp_table_refuse_closed(t, err);
        else if (rp_events_reserve_locked(t, n) != RP_OK)
            st = rp_fail_memory(err, n * sizeof(rp_event));
        else
            in_all += update_and_tell_locked(t, &block, n);
        *lsn = t->telling.lsn;
        rp_table_leave(t);
        if (found != NULL) *found = in_all;
        if (st != RP_OK) return st;
    }
    return RP_OK;
}

rp_status rp_table_update(rp_table *t, const rp_update *updates, size_t count, size_t *found,
                          rp_error *err)
{
    uint64_t lsn;
    rp_status st = rp_table_update_logged(t, updates, count, found, &lsn, err);

    return rp_table_wait_safe(t, st, lsn, rp_wait_forever(), err);
}

/* An extension's one by one, as they were made; the others as a block. */
rp_status rp_update_replay_locked(rp_table *t, const rp_change *change, rp_error *err)
{
    update_block block;
    size_t n;

    for (size_t i = 0; i < change->count; i += n) {
        n = change->count - i < RP_BLOCK ? change->count - i : RP_BLOCK;
        if (change->by_extension) n = 1;
        if (weigh_block(t, change->updates + i, n, &block, err) != RP_OK)
            return err != NULL ? err->code = RP_CORRUPT : RP_CORRUPT;
        find_block_locked(t, block.tags, block.keys, n, block.slots);
        for (size_t j = 0; j < n; j++)
            if (block.slots[j] == RP_MAP_NONE)
                return rp_fail(err, RP_CORRUPT,
                               "table '%.60s': update of key %llu, which is not there",
                               t->options.name, (unsigned long long)block.keys[j]);
        if (change->by_extension) {
            rp_weighed w = {block.priorities[0], block.sampler_values[0],
                            block.remover_values[0]};
            rp_table_set_priority_locked(t, block.slots[0], &w);
        } else {
            (void)update_block_locked(t, &block, n);
        }
    }
    return RP_OK;
}

/* Deletes a block, or the first part of it if its items have many chunks; `*count` is how many
 * keys were dealt with. Returns how many of them were found. */
static size_t delete_block_locked(rp_table *t, const uint64_t *keys, const uint32_t *tags,
                                  size_t *count) RP_REQUIRES(t->mu)
{
    uint32_t slots[RP_BLOCK];
    uint64_t gone[RP_BLOCK];
    size_t n = 0, i = 0;

    find_block_locked(t, tags, keys, *count, slots);
    t->removed_chunks = 0;
    for (; i < *count && t->removed_chunks <= RP_BLOCK_CHUNKS; i++) {
        if (slots[i] == RP_MAP_NONE) continue;
        /* A key that comes twice is gone the second time. */
        slots[i] = rp_table_find_locked(t, keys[i], tags[i]);
        if (slots[i] == RP_MAP_NONE) continue;
        rp_table_remove_locked(t, slots[i]);
        gone[n++] = keys[i];
    }
    *count = i;
    if (n > 0 && rp_table_log_of(t) != NULL) {
        rp_change change = {.kind = RP_CHANGED_DELETE, .keys = gone, .count = n};
        rp_tell_locked(t, &change);
    }
    return n;
}

rp_status rp_delete_replay_locked(rp_table *t, const rp_change *change, rp_error *err)
{
    for (size_t i = 0; i < change->count; i++) {
        uint64_t key = change->keys[i];
        uint32_t slot = rp_table_find_locked(t, key, rp_map_tag(&t->keys, key));

        if (slot == RP_MAP_NONE)
            return rp_fail(err, RP_CORRUPT,
                           "table '%.60s': delete of key %llu, which is not there",
                           t->options.name, (unsigned long long)key);
        rp_table_remove_locked(t, slot);
    }
    return RP_OK;
}

rp_status rp_table_delete(rp_table *t, const uint64_t *keys, size_t count, size_t *found,
                          rp_error *err)
{
    uint64_t lsn;
    rp_status st = rp_table_delete_logged(t, keys, count, found, &lsn, err);

    return rp_table_wait_safe(t, st, lsn, rp_wait_forever(), err);
}

rp_status rp_table_delete_logged(rp_table *t, const uint64_t *keys, size_t count, size_t *found,
                                 uint64_t *lsn, rp_error *err)
{
    uint32_t tags[RP_BLOCK];
    size_t in_all = 0, n;
    rp_status st = RP_OK;

    *lsn = 0;
    for (size_t i = 0; st == RP_OK && i < count; i += n) {
        n = count - i < RP_BLOCK ? count - i : RP_BLOCK;
        set_tags(t, keys + i, n, tags);
        rp_mutex_lock(&t->mu);
        if (t->closed)
            st = rp_table_refuse_closed(t, err);
        else if (rp_events_reserve_locked(t, n) != RP_OK)
            st = rp_fail_memory(err, n * sizeof(rp_event));
        else
            in_all += delete_block_locked(t, keys + i, tags, &n);
        *lsn = t->telling.lsn;
        rp_table_leave(t);
    }
    if (found != NULL) *found = in_all;
    return st;
}

rp_status rp_table_peek_unread(rp_table *t, const uint64_t *keys, size_t count, rp_sample *out,
                               size_t *found, rp_error *err)
{
    uint32_t tags[RP_BLOCK], slots[RP_BLOCK];
    size_t in_all = 0, n;

    for (size_t i = 0; i < count; i += n) {
        n = count - i < RP_BLOCK ? count - i : RP_BLOCK;
        set_tags(t, keys + i, n, tags);
        rp_mutex_lock(&t->mu);
        if (t->closed) {
            rp_mutex_unlock(&t->mu);
            rp_samples_release(out, i);
            return rp_table_refuse_closed(t, err);
        }
        find_block_locked(t, tags, keys + i, n, slots);
        for (size_t j = 0; j < n; j++) {
            rp_sample *s = &out[i + j];
            const rp_slot *slot;

            *s = (rp_sample){.key = keys[i + j]};
            if (slots[j] == RP_MAP_NONE) continue;
            slot = rp_slots_at(&t->slots, slots[j]);
            s->priority = slot->priority;
            s->trajectory = rp_trajectory_ref(slot->trajectory);
            s->table_size = (int64_t)t->slots.live;
            s->inserted_at_ns = slot->inserted_at_ns;
            s->times_sampled = slot->times_sampled;
            in_all++;
        }
        rp_mutex_unlock(&t->mu);
    }
    if (found != NULL) *found = in_all;
    return RP_OK;
}

rp_status rp_table_peek(rp_table *t, const uint64_t *keys, size_t count, rp_sample *out,
                        size_t *found, rp_error *err)
{
    rp_spill *spill = t->account.budget->spill;
    rp_status st = rp_table_peek_unread(t, keys, count, out, found, err);

    if (spill == NULL || st != RP_OK) return st;
    st = rp_spill_load(spill, out, count, err);
    if (st != RP_OK) rp_samples_release(out, count);
    return st;
}
