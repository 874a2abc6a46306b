/* SPDX-License-Identifier: Apache-2.0 */
/* A table: items in slots, a map from keys to slots, one selector to sample, one to remove, one
 * rate limiter. operation.c inserts and samples; this file has everything else.
 *
 * Invariants, whenever mu is free:
 *   T1  the map, the sampler and the remover hold exactly the live slots;
 *   T2  live slots <= max_size, unless the limit is soft;
 *   T3  an operation that fails leaves T1 and every counter as they were;
 *   T4  a live slot holds references to its trajectory, and the account counts it once;
 *   T5  limiter.inserts - limiter.deletes is the number of live slots;
 *   T6  the first operation in each queue of parked ones cannot go ahead.
 * rp_table_check() looks at T1, T2, T4, T5 and at the selectors' own invariants.
 *
 * Multi-structure changes are reserve, then commit: every allocation is made before the first
 * change. Trajectories are let go outside the lock (L2): a removed item stays in its slot,
 * dead, until then.
 *
 * Cost: insert, update and sample are O(log n) with the prioritized selector and the heaps,
 * O(1) otherwise. Batches are worked through in passes, each of which fetches what the next one
 * needs. */
#include "table/table.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "chunk/trajectory.h"
#include "util/error.h"
#include "util/mem.h"

enum { BLOCK = 256, MAX_NAME = 255 };

static_assert((int)BLOCK <= (int)RP_EVENTS_AT_ONCE,
              "updates are told of after the whole block is done");

/* --- birth and death ---------------------------------------------------------------------------- */

static rp_status check_options(const rp_table_options *o, rp_error *err)
{
    rp_error why;

    if (o->name == NULL || o->name[0] == '\0')
        return rp_fail(err, RP_INVALID, "a table must have a name");
    if (strlen(o->name) > MAX_NAME)
        return rp_fail(err, RP_INVALID, "table name of %zu bytes is over %d", strlen(o->name),
                       MAX_NAME);
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
    rp_weighed one;
    rp_status st = rp_selector_new(&t->alloc, &o->sampler, &t->sampler, err);

    if (st == RP_OK) st = rp_selector_new(&t->alloc, &o->remover, &t->remover, err);
    if (st == RP_OK)
        st = rp_events_init(&t->events, &t->alloc, o->extensions, o->extension_count, err);
    if (st == RP_OK) st = rp_table_weigh(t, 1, &one, err);
    if (st == RP_OK) st = copy_name(t, err);
    if (st != RP_OK) return st;
    t->max_priority = 1;
    t->max_sampler_value = one.sampler_value;
    t->max_remover_value = one.remover_value;
    return RP_OK;
}

static void free_parts(rp_table *t, bool owns_extensions) RP_NO_THREAD_SAFETY_ANALYSIS
{
    for (uint32_t i = 0; i < t->slots.used; i++)
        if (rp_slots_at(&t->slots, i)->state == RP_SLOT_LIVE)
            rp_account_remove(&t->account, rp_slots_at(&t->slots, i)->trajectory);
    rp_account_settle(&t->account);
    rp_slots_deinit(&t->slots);
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
    rp_status st = check_options(options, err);

    if (st != RP_OK) return st;
    t = rp_alloc_zero(alloc, sizeof *t);
    if (t == NULL) return rp_fail_memory(err, sizeof *t);
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

void rp_table_free(rp_table *t)
{
    rp_allocator alloc;

    if (t == NULL) return;
    alloc = t->alloc;
    free_parts(t, true);
    rp_signature_unref(t->options.signature);
    rp_release(&alloc, (char *)t->options.name, strlen(t->options.name) + 1);
    rp_release(&alloc, t, sizeof *t);
}

/* --- changing one item --------------------------------------------------------------------------- */

uint32_t rp_table_find_locked(const rp_table *t, uint64_t key, uint32_t tag)
{
    rp_map_cursor at = rp_map_start(&t->keys, tag);
    uint32_t slot;

    while ((slot = rp_map_next(&t->keys, tag, &at)) != RP_MAP_NONE)
        if (rp_slots_at(&t->slots, slot)->key == key) break;
    return slot;
}

void rp_table_note_priority_locked(rp_table *t, const rp_weighed *w)
{
    if (w->priority <= t->max_priority || isinf(w->priority)) return;
    t->max_priority = w->priority;
    t->max_sampler_value = w->sampler_value;
    t->max_remover_value = w->remover_value;
}

void rp_table_set_priority_locked(rp_table *t, uint32_t slot, const rp_weighed *w)
{
    rp_slots_at(&t->slots, slot)->priority = w->priority;
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

/* --- leaving the lock ---------------------------------------------------------------------------- */

/* What a thread takes with it when it leaves the lock. */
typedef struct takeaway {
    rp_remains dead[BLOCK];
    size_t dead_count;
    bool more_dead;
    rp_op *finished;
    bool freed_bytes;
    bool has_deferred;
} takeaway;

static void take_locked(rp_table *t, takeaway *out) RP_REQUIRES(t->mu)
{
    rp_table_count_out_locked(t, SIZE_MAX);
    rp_account_settle(&t->account);
    out->dead_count = rp_slots_exhume(&t->slots, out->dead, BLOCK);
    out->more_dead = t->slots.dead > 0;
    out->finished = NULL;
    if (t->finished != NULL && !t->calling_back) {
        out->finished = t->finished;
        t->finished = t->finished_last = NULL;
        t->calling_back = true;
    }
    out->freed_bytes = t->account.freed > 0;
    t->account.freed = 0;
    out->has_deferred = t->events.deferred_count > 0;
}

static void let_go(rp_table *t, takeaway *taken) RP_EXCLUDES(t->mu)
{
    for (;;) {
        for (size_t i = 0; i < taken->dead_count; i++)
            rp_trajectory_unref_many(taken->dead[i].trajectory, taken->dead[i].references);
        if (!taken->more_dead) return;
        rp_mutex_lock(&t->mu);
        taken->dead_count = rp_slots_exhume(&t->slots, taken->dead, BLOCK);
        taken->more_dead = t->slots.dead > 0;
        rp_mutex_unlock(&t->mu);
    }
}

/* Tells the owners of operations that are over. One thread at a time: if an owner starts
 * something that ends other operations, they are told by the loop here and not by a call within
 * the call. */
static void call_back(rp_table *t, rp_op *finished) RP_EXCLUDES(t->mu)
{
    while (finished != NULL) {
        while (finished != NULL) {
            rp_op *op = finished;
            finished = op->next; /* before the call: the operation is its owner's again */
            rp_op_finish(op);
            op->on_done(op);
        }
        rp_mutex_lock(&t->mu);
        finished = t->finished;
        t->finished = t->finished_last = NULL;
        t->calling_back = finished != NULL;
        rp_mutex_unlock(&t->mu);
    }
}

/* Leaves the lock and does what must be done without it, except waking other tables. True if
 * bytes went back to the budget. */
static bool settle(rp_table *t) RP_RELEASE(t->mu)
{
    takeaway taken;

    rp_events_flush_locked(t);
    rp_table_pump_locked(t);
    rp_events_flush_locked(t);
    take_locked(t, &taken);
    rp_mutex_unlock(&t->mu);
    let_go(t, &taken);
    call_back(t, taken.finished);
    while (taken.has_deferred) {
        bool freed = taken.freed_bytes;

        rp_events_deliver(t);
        /* Deferred extensions have caught up: operations that waited for that may go on. */
        rp_mutex_lock(&t->mu);
        rp_table_pump_locked(t);
        rp_events_flush_locked(t);
        take_locked(t, &taken);
        if (t->events.delivering) taken.has_deferred = false; /* somebody else will */
        rp_mutex_unlock(&t->mu);
        taken.freed_bytes |= freed;
        let_go(t, &taken);
        call_back(t, taken.finished);
    }
    return taken.freed_bytes;
}

/* Gives tables that wait for bytes another try, until none of them frees any more. */
static void wake_byte_waiters(rp_budget *b)
{
    bool freed = true;

    /* Sequentially consistent, like the count's increment in operation.c: either the waiter
     * sees the bytes that were freed, or we see the waiter. */
    while (freed && atomic_load(&b->waiting) > 0) {
        freed = false;
        for (rp_table *t = atomic_load(&b->first_table); t != NULL; t = t->next_of_budget) {
            rp_mutex_lock(&t->mu);
            if (t->waits_for_bytes)
                freed |= settle(t);
            else
                rp_mutex_unlock(&t->mu);
        }
    }
}

void rp_table_leave(rp_table *t)
{
    rp_budget *b = t->account.budget;

    if (settle(t)) wake_byte_waiters(b);
}

static rp_status refuse_closed(const rp_table *t, rp_error *err)
{
    return rp_fail(err, RP_CANCELLED, "table '%s' is closed", t->options.name);
}

/* --- by key --------------------------------------------------------------------------------------- */

/* Finds the slots of up to BLOCK keys: fetches the slots, then compares. */
static void find_block_locked(const rp_table *t, const uint32_t *tags, const uint64_t *keys,
                              size_t count, uint32_t *slots) RP_REQUIRES(t->mu)
{
    for (size_t i = 0; i < count; i++) {
        rp_map_cursor at = rp_map_start(&t->keys, tags[i]);
        slots[i] = rp_map_next(&t->keys, tags[i], &at); /* almost surely the right one */
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
    uint64_t keys[BLOCK];
    uint32_t tags[BLOCK], slots[BLOCK];
    double priorities[BLOCK], sampler_values[BLOCK], remover_values[BLOCK];
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
        b->priorities[n] = b->priorities[i];
        b->sampler_values[n] = b->sampler_values[i];
        b->remover_values[n] = b->remover_values[i];
        n++;
    }
    if (t->sampler->ops->prefetch != NULL) t->sampler->ops->prefetch(t->sampler, b->slots, n);
    for (size_t i = 0; i < n; i++) {
        rp_slot *slot = rp_slots_at(&t->slots, b->slots[i]);
        rp_weighed w = {b->priorities[i], b->sampler_values[i], b->remover_values[i]};

        slot->priority = w.priority;
        rp_table_note_priority_locked(t, &w);
        rp_events_add_locked(t, RP_EVENT_UPDATE, slot);
    }
    t->sampler->ops->update(t->sampler, b->slots, b->sampler_values, n);
    t->remover->ops->update(t->remover, b->slots, b->remover_values, n);
    t->updates += (int64_t)n;
    return n;
}

rp_status rp_table_update(rp_table *t, const rp_update *updates, size_t count, size_t *found,
                          rp_error *err)
{
    update_block block;
    size_t n = 0, in_all = 0;
    rp_status st = RP_OK;

    if (found != NULL) *found = 0;
    for (size_t i = 0; count > BLOCK && i < count; i += n) { /* check all before changing any */
        n = count - i < BLOCK ? count - i : BLOCK;
        st = weigh_block(t, updates + i, n, &block, err);
        if (st != RP_OK) return st;
    }
    for (size_t i = 0; i < count; i += n) {
        n = count - i < BLOCK ? count - i : BLOCK;
        st = weigh_block(t, updates + i, n, &block, err);
        if (st != RP_OK) return st;
        rp_mutex_lock(&t->mu);
        if (t->closed)
            st = refuse_closed(t, err);
        else if (rp_events_reserve_locked(t, n) != RP_OK)
            st = rp_fail_memory(err, n * sizeof(rp_event));
        else
            in_all += update_block_locked(t, &block, n);
        rp_table_leave(t);
        if (found != NULL) *found = in_all;
        if (st != RP_OK) return st;
    }
    return RP_OK;
}

/* Deletes a block; returns how many keys were found. */
static size_t delete_block_locked(rp_table *t, const uint64_t *keys, const uint32_t *tags,
                                  size_t count) RP_REQUIRES(t->mu)
{
    uint32_t slots[BLOCK];
    size_t n = 0;

    find_block_locked(t, tags, keys, count, slots);
    for (size_t i = 0; i < count; i++) {
        if (slots[i] == RP_MAP_NONE) continue;
        /* A key that comes twice is gone the second time. */
        slots[i] = rp_table_find_locked(t, keys[i], tags[i]);
        if (slots[i] == RP_MAP_NONE) continue;
        rp_table_remove_locked(t, slots[i]);
        n++;
    }
    return n;
}

rp_status rp_table_delete(rp_table *t, const uint64_t *keys, size_t count, size_t *found,
                          rp_error *err)
{
    uint32_t tags[BLOCK];
    size_t in_all = 0, n;
    rp_status st = RP_OK;

    for (size_t i = 0; st == RP_OK && i < count; i += n) {
        n = count - i < BLOCK ? count - i : BLOCK;
        set_tags(t, keys + i, n, tags);
        rp_mutex_lock(&t->mu);
        if (t->closed)
            st = refuse_closed(t, err);
        else if (rp_events_reserve_locked(t, n) != RP_OK)
            st = rp_fail_memory(err, n * sizeof(rp_event));
        else
            in_all += delete_block_locked(t, keys + i, tags, n);
        rp_table_leave(t);
    }
    if (found != NULL) *found = in_all;
    return st;
}

rp_status rp_table_peek(rp_table *t, const uint64_t *keys, size_t count, rp_sample *out,
                        size_t *found, rp_error *err)
{
    uint32_t tags[BLOCK], slots[BLOCK];
    size_t in_all = 0, n;

    for (size_t i = 0; i < count; i += n) {
        n = count - i < BLOCK ? count - i : BLOCK;
        set_tags(t, keys + i, n, tags);
        rp_mutex_lock(&t->mu);
        if (t->closed) {
            rp_mutex_unlock(&t->mu);
            rp_samples_release(out, i);
            return refuse_closed(t, err);
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

/* --- the whole table ------------------------------------------------------------------------------ */

static bool is_over_locked(const rp_table *t) RP_REQUIRES(t->mu)
{
    if (t->slots.live > (size_t)t->options.max_size) return true;
    return t->options.max_bytes > 0 && t->account.bytes > t->options.max_bytes;
}

rp_status rp_table_trim(rp_table *t, size_t *removed, rp_error *err)
{
    size_t in_all = 0;
    bool over = true;
    rp_status st = RP_OK;

    while (over && st == RP_OK) { /* in blocks, so that others get a turn */
        rp_mutex_lock(&t->mu);
        if (t->closed)
            st = refuse_closed(t, err);
        else if (rp_events_reserve_locked(t, BLOCK) != RP_OK)
            st = rp_fail_memory(err, BLOCK * sizeof(rp_event));
        for (size_t i = 0; st == RP_OK && i < BLOCK && is_over_locked(t); i++) {
            rp_table_evict_locked(t);
            if (t->options.max_bytes > 0) rp_table_count_out_locked(t, SIZE_MAX);
            in_all++;
        }
        over = is_over_locked(t);
        rp_table_leave(t);
    }
    if (removed != NULL) *removed = in_all;
    return st;
}

/* Removes everything at once; the trajectories are let go in blocks, without the lock. */
static void clear_locked(rp_table *t) RP_REQUIRES(t->mu)
{
    for (uint32_t i = 0; i < t->slots.used; i++) {
        rp_slot *slot = rp_slots_at(&t->slots, i);
        if (slot->state == RP_SLOT_LIVE) rp_slots_bury(&t->slots, i);
    }
    rp_table_count_out_locked(t, SIZE_MAX);
    rp_map_clear(&t->keys);
    t->sampler->ops->clear(t->sampler);
    t->remover->ops->clear(t->remover);
}

rp_status rp_table_reset(rp_table *t, rp_error *err)
{
    rp_status st = RP_OK;
    rp_weighed one;

    if (rp_table_weigh(t, 1, &one, err) != RP_OK) return RP_INTERNAL; /* was fine at birth */
    rp_mutex_lock(&t->mu);
    if (t->closed) {
        st = refuse_closed(t, err);
    } else if (rp_events_reserve_locked(t, 1) != RP_OK) {
        st = rp_fail_memory(err, sizeof(rp_event));
    } else {
        clear_locked(t);
        rp_rate_limiter_reset(&t->limiter);
        rp_account_reset(&t->account);
        t->unique_samples = t->updates = t->evictions = 0;
        t->max_priority = 1;
        t->max_sampler_value = one.sampler_value;
        t->max_remover_value = one.remover_value;
        rp_events_add_locked(t, RP_EVENT_RESET, NULL);
    }
    rp_table_leave(t);
    return st;
}

void rp_table_close(rp_table *t)
{
    rp_mutex_lock(&t->mu);
    t->closed = true;
    rp_table_fail_parked_locked(t, RP_CANCELLED, "was closed");
    rp_table_leave(t);
}

const char *rp_table_name(const rp_table *t)
{
    return t->options.name;
}

void rp_table_get_info(rp_table *t, rp_table_info *out)
{
    const rp_table_options *o = &t->options;

    *out = (rp_table_info){
        .name = o->name,
        .sampler = o->sampler,
        .remover = o->remover,
        .limiter = o->limiter,
        .max_size = o->max_size,
        .max_bytes = o->max_bytes,
        .max_times_sampled = o->max_times_sampled,
        .soft_limit = o->soft_limit,
        .signature = o->signature,
    };
    rp_mutex_lock(&t->mu);
    out->closed = t->closed;
    out->size = (int64_t)t->slots.live;
    out->bytes = t->account.bytes;
    out->inserts = t->limiter.inserts;
    out->samples = t->limiter.samples;
    out->deletes = t->limiter.deletes;
    out->updates = t->updates;
    out->evictions = t->evictions;
    out->episodes = (int64_t)rp_count_map_size(&t->account.episodes);
    out->deleted_episodes = t->account.deleted_episodes;
    out->unique_samples = t->unique_samples;
    out->max_priority = t->max_priority;
    out->waiting_inserts = (int64_t)t->inserts.count;
    out->waiting_samples = (int64_t)t->samples.count;
    rp_mutex_unlock(&t->mu);
}

bool rp_table_can_insert(rp_table *t, int64_t count)
{
    bool can;

    rp_mutex_lock(&t->mu);
    can = count >= 1 && rp_rate_limiter_can_insert(&t->limiter, count);
    rp_mutex_unlock(&t->mu);
    return can;
}

bool rp_table_can_sample(rp_table *t, int64_t count)
{
    bool can;

    rp_mutex_lock(&t->mu);
    can = count >= 1 && rp_rate_limiter_can_sample(&t->limiter, count);
    rp_mutex_unlock(&t->mu);
    return can;
}

static bool check_locked(rp_table *t) RP_REQUIRES(t->mu)
{
    size_t live = 0;

    for (uint32_t i = 0; i < t->slots.used; i++) {
        const rp_slot *slot = rp_slots_at(&t->slots, i);
        if (slot->state != RP_SLOT_LIVE) continue;
        live++;
        if (slot->trajectory == NULL || slot->tag != rp_map_tag(&t->keys, slot->key))
            return false;
        if (rp_table_find_locked(t, slot->key, slot->tag) != i) return false;  /* T1 */
        if (rp_account_cost(&t->account, slot->trajectory) != 0) return false; /* T4 */
    }
    if (live != t->slots.live || live != t->keys.count) return false;
    if (!t->options.soft_limit && live > (size_t)t->options.max_size) return false; /* T2 */
    if (t->options.max_bytes > 0 && t->account.bytes > t->options.max_bytes) return false;
    if (t->limiter.inserts - t->limiter.deletes != (int64_t)live) return false; /* T5 */
    return t->sampler->ops->check(t->sampler, live) && t->remover->ops->check(t->remover, live);
}

bool rp_table_check(rp_table *t)
{
    bool ok;

    rp_mutex_lock(&t->mu);
    ok = check_locked(t);
    rp_mutex_unlock(&t->mu);
    return ok;
}
