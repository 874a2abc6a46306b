/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on items by key: update, delete, peek.
 *
 * Keys are processed in blocks of RP_BLOCK: hashed and prefetched without the lock, then found
 * and changed under it. */
#include <assert.h>

#include "chunk/trajectory.h"
#include "table/table_log.h"
#include "util/error.h"

static_assert((int)RP_BLOCK <= (int)RP_EVENTS_AT_ONCE,
              "a block of updates is logged before its events are delivered");

/* Keys that a call that blocks changes before it looks again whether the log is behind. */
enum { AT_ONCE = 64 << 10 };

/* Finds the slots of up to RP_BLOCK keys: prefetches the slots, then compares the keys. */
static void find_block_locked(const rp_table *t, const uint32_t *tags, const uint64_t *keys,
                              size_t count, uint32_t *slots) RP_REQUIRES(t->mu)
{
    for (size_t i = 0; i < count; i++) {
        rp_map_cursor at = rp_map_start(&t->keys, tags[i]);
        slots[i] = rp_map_next(tags[i], &at); /* almost always the right one */
        if (slots[i] != RP_MAP_NONE) __builtin_prefetch(rp_slots_at(&t->slots, slots[i]), 1);
    }
    for (size_t i = 0; i < count; i++)
        if (slots[i] != RP_MAP_NONE && rp_slots_at(&t->slots, slots[i])->key != keys[i])
            slots[i] = rp_table_find_locked(t, keys[i], tags[i]);
}

/* Hashes keys and prefetches the lines of the map, before the lock is acquired. */
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
    return RP_INTERNAL; /* rp_selector_values() refused one of them */
}

/* Applies a block; returns how many keys were found. */
static size_t update_block_locked(rp_table *t, update_block *b, size_t count) RP_REQUIRES(t->mu)
{
    size_t n = 0;

    assert(rp_mutex_is_held(&t->mu) && count <= RP_BLOCK);
    find_block_locked(t, b->tags, b->keys, count, b->slots);
    for (size_t i = 0; i < count; i++) { /* close the gaps of unknown keys */
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
        rp_table_update_max_locked(t, &w);
        rp_events_add_locked(t, RP_EVENT_UPDATE, slot);
    }
    t->sampler->ops->update(t->sampler, b->slots, b->sampler_values, n);
    t->remover->ops->update(t->remover, b->slots, b->remover_values, n);
    t->updates += (int64_t)n;
    assert(n <= count);
    return n;
}

static void log_updates_locked(rp_table *t, const update_block *b, size_t count)
    RP_REQUIRES(t->mu)
{
    rp_update updates[RP_BLOCK];
    rp_log_record change = {.kind = RP_LOGGED_UPDATE, .updates = updates, .count = count};

    for (size_t i = 0; i < count; i++) updates[i] = (rp_update){b->keys[i], b->priorities[i]};
    if (count > 0) rp_log_locked(t, &change);
}

static size_t update_and_log_locked(rp_table *t, update_block *b, size_t count)
    RP_REQUIRES(t->mu)
{
    size_t n = update_block_locked(t, b, count);

    if (rp_table_log_of(t) != NULL) log_updates_locked(t, b, n);
    return n;
}

rp_status rp_table_check_updates(const rp_table *t, const rp_update *updates, size_t count,
                                 rp_error *err)
{
    update_block block;
    rp_status st = RP_OK;
    size_t n;

    for (size_t i = 0; st == RP_OK && i < count; i += n) {
        n = count - i < RP_BLOCK ? count - i : RP_BLOCK;
        st = weigh_block(t, updates + i, n, &block, err);
    }
    return st;
}

rp_status rp_table_update_logged(rp_table *t, const rp_update *updates, size_t count,
                                 size_t *found, uint64_t *lsn, rp_error *err)
{
    update_block block;
    size_t n = 0, in_all = 0;
    rp_status st = RP_OK;

    *lsn = 0;
    if (found != NULL) *found = 0;
    if (count > RP_BLOCK) { /* check all before changing any */
        st = rp_table_check_updates(t, updates, count, err);
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
            in_all += update_and_log_locked(t, &block, n);
        *lsn = t->log_buffer.lsn;
        rp_table_unlock(t);
        if (found != NULL) *found = in_all;
        if (st != RP_OK) return st;
    }
    return RP_OK;
}

rp_status rp_table_update(rp_table *t, const rp_update *updates, size_t count, size_t *found,
                          rp_error *err)
{
    rp_status st = RP_OK;
    uint64_t lsn = 0;
    size_t in_all = 0, n, some;

    if (updates == NULL && count > 0)
        return rp_fail(err, RP_INVALID, "table '%s': %zu updates, and no array",
                       t->options.name, count);
    if (count > AT_ONCE) st = rp_table_check_updates(t, updates, count, err);
    for (size_t i = 0; st == RP_OK && i < count; i += n) {
        n = count - i < AT_ONCE ? count - i : AT_ONCE;
        st = rp_table_wait_for_log(t, err);
        if (st != RP_OK) break;
        st = rp_table_update_logged(t, updates + i, n, &some, &lsn, err);
        in_all += some;
    }
    if (found != NULL) *found = in_all;
    return rp_table_wait_durable(t, st, lsn, rp_wait_forever(), err);
}

/* Repeats updates. Updates of an extension are repeated one by one, as they were made; others
 * are repeated in blocks. */
rp_status rp_update_redo_locked(rp_table *t, const rp_log_record *change, rp_error *err)
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

/* Deletes the items of a block of keys, or of the first part of it if they have many chunks.
 * Sets `*count` to the number of keys processed. Returns the number of keys found. */
static size_t delete_block_locked(rp_table *t, const uint64_t *keys, const uint32_t *tags,
                                  size_t *count) RP_REQUIRES(t->mu)
{
    uint32_t slots[RP_BLOCK];
    uint64_t gone[RP_BLOCK];
    size_t n = 0, i = 0;

    assert(rp_mutex_is_held(&t->mu) && *count <= RP_BLOCK);
    find_block_locked(t, tags, keys, *count, slots);
    t->removed_chunks = 0;
    for (; i < *count && t->removed_chunks <= RP_BLOCK_CHUNKS; i++) {
        if (slots[i] == RP_MAP_NONE) continue;
        /* A key that occurs twice is not found the second time. */
        slots[i] = rp_table_find_locked(t, keys[i], tags[i]);
        if (slots[i] == RP_MAP_NONE) continue;
        rp_table_remove_locked(t, slots[i]);
        gone[n++] = keys[i];
    }
    *count = i;
    if (n > 0 && rp_table_log_of(t) != NULL) {
        rp_log_record change = {.kind = RP_LOGGED_DELETE, .keys = gone, .count = n};
        rp_log_locked(t, &change);
    }
    return n;
}

rp_status rp_delete_redo_locked(rp_table *t, const rp_log_record *change, rp_error *err)
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
    rp_status st = RP_OK;
    uint64_t lsn = 0;
    size_t in_all = 0, n, some;

    if (keys == NULL && count > 0)
        return rp_fail(err, RP_INVALID, "table '%s': %zu keys, and no array", t->options.name,
                       count);
    for (size_t i = 0; st == RP_OK && i < count; i += n) {
        n = count - i < AT_ONCE ? count - i : AT_ONCE;
        st = rp_table_wait_for_log(t, err);
        if (st != RP_OK) break;
        st = rp_table_delete_logged(t, keys + i, n, &some, &lsn, err);
        in_all += some;
    }
    if (found != NULL) *found = in_all;
    return rp_table_wait_durable(t, st, lsn, rp_wait_forever(), err);
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
        *lsn = t->log_buffer.lsn;
        rp_table_unlock(t);
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

rp_status rp_table_load(rp_table *t, rp_sample *samples, size_t count, rp_error *err)
{
    rp_spill *spill = t->account.budget->spill;

    return spill != NULL ? rp_spill_load(spill, samples, count, err) : RP_OK;
}

rp_status rp_table_peek(rp_table *t, const uint64_t *keys, size_t count, rp_sample *out,
                        size_t *found, rp_error *err)
{
    rp_status st = rp_table_peek_unread(t, keys, count, out, found, err);

    if (st != RP_OK) return st;
    st = rp_table_load(t, out, count, err);
    if (st != RP_OK) rp_samples_release(out, count);
    return st;
}
