/* SPDX-License-Identifier: Apache-2.0 */
/* Inserting items, a block at a time.
 *
 *   prepare    check, weigh, hash; prefetch the map              no lock
 *   reserve    make every allocation                             under the lock, may fail
 *   insert     slot, map, selectors; evict                       under the lock, cannot fail
 *   count      add and remove items in the account               under the lock, in a row
 *   clean up   drop references that the table did not take       no lock
 *
 * The table is consistent after each item, so a block may stop between any two of them. */
#include <assert.h>

#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "table/operation/operation.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    KNOWN_FLAGS = RP_INSERT_MAX_PRIORITY | RP_INSERT_TAKE,
    SPARE_EVENTS = 2 * RP_BLOCK + 1, /* one eviction, and the rest of a block after it */
    SMALL_SHARE = 64,  /* a table below limit / 64 evicts nothing because of lost bytes */
    WAITING_SHARE = 4, /* an item over limit / 4 does not wait for other tables to evict */
};

/* Writes the error text for an item that check_item() refuses. */
static void explain_bad(const rp_table *t, const rp_insert *item, size_t index, rp_error *err)
{
    rp_error why = {.text = "it has no trajectory"};
    rp_status st = RP_INVALID;
    rp_weighed ignored;

    if (item->trajectory != NULL) {
        st = RP_OK;

        if (item->times_sampled < 0)
            st = rp_fail(&why, RP_INVALID, "times_sampled must be >= 0, got %d",
                         item->times_sampled);
        if (st == RP_OK && (item->flags & RP_INSERT_MAX_PRIORITY) == 0)
            st = rp_table_weigh(t, item->priority, &ignored, &why);
        if (st == RP_OK && t->options.signature != NULL)
            st = rp_trajectory_check(item->trajectory, t->options.signature, &why);
        if (st == RP_OK && (item->flags & ~(uint32_t)KNOWN_FLAGS) != 0)
            st = rp_fail(&why, RP_INVALID, "flags %#x are not all known", item->flags);
        if (st == RP_OK && rp_budget_claim(t->account.budget, item->trajectory, &why) == RP_OK)
            (void)rp_fail(&why, RP_INTERNAL, "it was refused and is fine now");
    }
    (void)rp_fail(err, RP_INVALID, "table '%.60s': item %zu, key %llu: %.140s", t->options.name,
                  index, (unsigned long long)item->key, why.text);
}

static bool check_item(const rp_table *t, const rp_insert *item)
{
    const rp_signature *signature = t->options.signature;

    if (item->trajectory == NULL || item->times_sampled < 0) return false;
    if ((item->flags & ~(uint32_t)KNOWN_FLAGS) != 0) return false;
    if (signature != NULL && rp_trajectory_check(item->trajectory, signature, NULL) != RP_OK)
        return false;
    return true;
}

void rp_insert_clean_up(const rp_prepared *block, size_t count, size_t done)
{
    for (size_t i = 0; i < count; i++)
        if (i < done || !block[i].is_offered) rp_trajectory_unref(block[i].trajectory);
}

/* Computes the values of the priorities of a block. The values of items with
 * RP_INSERT_MAX_PRIORITY are set later, under the lock. */
static bool weigh_block(const rp_table *t, const rp_insert *items, size_t count,
                        rp_prepared *block)
{
    double priorities[RP_BLOCK], sampler_values[RP_BLOCK], remover_values[RP_BLOCK];

    for (size_t i = 0; i < count; i++)
        priorities[i] = items[i].flags & RP_INSERT_MAX_PRIORITY ? 1 : items[i].priority;
    if (!rp_selector_values(t->sampler, priorities, sampler_values, count)) return false;
    if (!rp_selector_values(t->remover, priorities, remover_values, count)) return false;
    for (size_t i = 0; i < count; i++)
        block[i].weighed = (rp_weighed){priorities[i], sampler_values[i], remover_values[i]};
    return true;
}

/* The first item that cannot be inserted, or `count`. */
static size_t find_bad(const rp_table *t, const rp_insert *items, size_t count)
{
    rp_prepared ignored;

    for (size_t i = 0; i < count; i++)
        if (!check_item(t, &items[i]) || !weigh_block(t, &items[i], 1, &ignored)) return i;
    for (size_t i = 0; i < count; i++)
        if (rp_budget_claim(t->account.budget, items[i].trajectory, NULL) != RP_OK) return i;
    return count;
}

/* Announces the items to the log. If the disk is full, sets op->waits_for_disk. Otherwise the
 * caller calls rp_insert_unclaim() when the items are published, or not inserted. */
static rp_status prepare_log(const rp_table *t, rp_op *op, const rp_insert *items, size_t count,
                             rp_error *err)
{
    rp_table_log *log = rp_table_log_of(t);
    rp_trajectory *trajectories[RP_BLOCK];
    rp_error why;
    rp_status st;

    op->waits_for_disk = false;
    if (log == NULL) return RP_OK;
    for (size_t i = 0; i < count; i++) trajectories[i] = items[i].trajectory;
    assert(op->claimed == 0);
    st = log->prepare(log, trajectories, count, &op->claimed, &why);
    op->waits_for_disk = st == RP_UNAVAILABLE;
    if (st != RP_NO_RESOURCE) return RP_OK;
    return rp_fail(err, RP_NO_RESOURCE, "table '%.60s': %s", t->options.name, why.text);
}

void rp_insert_unclaim(const rp_table *t, uint64_t claimed)
{
    rp_table_log *log = rp_table_log_of(t);

    if (log != NULL && claimed > 0) log->unclaim(log, claimed);
}

/* A parked operation does not take the references that the caller offers, but drops them when
 * it is complete and no lock is held. */
rp_status rp_insert_prepare(const rp_table *t, rp_op *op, size_t first, size_t count,
                            rp_prepared *block, rp_error *err)
{
    const rp_insert *items = op->items + first;
    bool ok = weigh_block(t, items, count, block);

    assert(count <= RP_BLOCK && first + count <= op->count);
    for (size_t i = 0; i < count && ok; i++) {
        block[i].tag = rp_map_tag(&t->keys, items[i].key);
        rp_map_prefetch_unlocked(&t->keys, block[i].tag);
        ok = check_item(t, &items[i]);
    }
    for (size_t i = 0; i < count && ok; i++) /* last, as it cannot be undone */
        ok = rp_budget_claim(t->account.budget, items[i].trajectory, NULL) == RP_OK;
    if (!ok) {
        size_t bad = find_bad(t, items, count);
        assert(bad < count);
        explain_bad(t, &items[bad], first + bad, err);
        op->refused = first + bad;
        return RP_INVALID;
    }
    if (prepare_log(t, op, items, count, err) != RP_OK) return RP_NO_RESOURCE;
    for (size_t i = 0; i < count; i++) {
        block[i].trajectory = items[i].trajectory;
        block[i].is_offered = (items[i].flags & RP_INSERT_TAKE) != 0 && !op->was_parked;
        if (!block[i].is_offered) (void)rp_trajectory_ref(items[i].trajectory);
    }
    return RP_OK;
}

void rp_insert_finish(const rp_op *op)
{
    if (!op->was_parked) return;
    for (size_t i = op->parked_at; i < op->done; i++)
        if (op->items[i].flags & RP_INSERT_TAKE) rp_trajectory_unref(op->items[i].trajectory);
}

rp_status rp_insert_reserve_locked(rp_table *t, const rp_insert *items, size_t count)
{
    size_t most = t->options.soft_limit ? SIZE_MAX : (size_t)t->options.max_size + RP_BLOCK;
    size_t chunks = 0;

    for (size_t i = 0; i < count; i++) chunks += items[i].trajectory->chunk_count;
    if (rp_slots_reserve(&t->slots, count, most) != RP_OK ||
        rp_map_reserve(&t->keys, count) != RP_OK ||
        t->sampler->ops->reserve(t->sampler, t->slots.capacity) != RP_OK ||
        t->remover->ops->reserve(t->remover, t->slots.capacity) != RP_OK ||
        rp_account_reserve(&t->account, chunks) != RP_OK)
        return RP_NO_RESOURCE;
    return rp_events_reserve_locked(t, 2 * count);
}

/* Reclaims retired slots, then reserves like rp_insert_reserve_locked(). */
static rp_status reserve_locked(rp_table *t, const rp_insert *items, size_t count)
    RP_REQUIRES(t->mu)
{
    return rp_table_reclaim_locked(t) != RP_OK ? RP_NO_RESOURCE
                                               : rp_insert_reserve_locked(t, items, count);
}

/* The items that the next `count` inserts will evict, if they can be known. */
static size_t next_victims_locked(const rp_table *t, size_t count, uint32_t *victims)
    RP_REQUIRES(t->mu)
{
    if (t->slots.live + count <= (size_t)t->options.max_size) return 0;
    if (t->options.soft_limit || t->remover->ops->upcoming == NULL) return 0;
    return t->remover->ops->upcoming(t->remover, count, victims);
}

/* Prefetches the trajectories of the next `count` items to be evicted: the next call will need
 * them if it is an insert like this one. */
static void prefetch_victims_locked(const rp_table *t, size_t count) RP_REQUIRES(t->mu)
{
    uint32_t victims[RP_BLOCK];
    size_t n = next_victims_locked(t, count, victims);

    for (size_t i = 0; i < n; i++) {
        const rp_slot *slot = rp_slots_at(&t->slots, victims[i]);
        __builtin_prefetch(slot->trajectory, 1);
        __builtin_prefetch(slot->trajectory->chunks, 1); /* may be on the next cache line */
    }
}

/* Prefetches the chunks of the items that inserting a block will evict. Their trajectories were
 * prefetched before, and the lines of the map by rp_insert_prepare(). */
static void prefetch_chunks_locked(const rp_table *t, size_t count) RP_REQUIRES(t->mu)
{
    uint32_t victims[RP_BLOCK];
    size_t n = next_victims_locked(t, count, victims);

    if (n == 0) return;
    if (t->sampler->ops->prefetch != NULL) t->sampler->ops->prefetch(t->sampler, victims, n);
    for (size_t i = 0; i < n; i++) {
        const rp_slot *slot = rp_slots_at(&t->slots, victims[i]);
        rp_map_prefetch(&t->keys, slot->tag);
        __builtin_prefetch(slot->trajectory->chunks[0], 1);
        __builtin_prefetch((const char *)slot->trajectory->chunks[0] + RP_CACHE_LINE, 1);
    }
}

/* An item that is being fitted into the byte limits. It is in the account, so that evictions do
 * not free chunks that it shares with evicted items; it is removed again if it does not fit. */
typedef struct entering {
    const rp_insert *item;
    rp_entry entry;
    size_t evictions; /* made for the item */
    bool may_yield; /* false for RP_NOW: whenever the operation released the lock, other inserts
                       could take the room that it has made */
} entering;

/* The number of spare slots after the item has taken one. */
static size_t spare_after_locked(const rp_table *t) RP_REQUIRES(t->mu)
{
    return rp_table_spare_locked(t) - (t->slots.first_free != RP_SLOT_NONE);
}

/* Evicts one item and removes it from the account. */
static void evict_one_locked(rp_table *t, entering *e) RP_REQUIRES(t->mu)
{
    rp_table_evict_locked(t);
    rp_log_add_evicted_locked(t);
    rp_table_count_out_locked(t, SIZE_MAX);
    e->evictions++;
}

/* True if enough was evicted since the lock was acquired: the lock should be released for other
 * threads, or events must be delivered first. Each time, the item is removed from the account
 * and added again later. So an item with many chunks may evict more before that. */
static bool has_evicted_enough_locked(const rp_table *t, const entering *e) RP_REQUIRES(t->mu)
{
    size_t own = e->item->trajectory->chunk_count;

    if (own > RP_BLOCK_CHUNKS) own = RP_BLOCK_CHUNKS;
    if (!rp_log_has_room_locked(t)) return true;
    return e->may_yield && (e->evictions >= RP_BLOCK + own / 16 ||
                            t->removed_chunks > RP_BLOCK_CHUNKS + 4 * own);
}

/* Evicts items until the table is within its own byte limit. */
static rp_progress fit_table_locked(rp_table *t, rp_op *op, entering *e) RP_REQUIRES(t->mu)
{
    while (t->options.max_bytes > 0 && t->account.bytes > t->options.max_bytes) {
        if (has_evicted_enough_locked(t, e)) return RP_YIELD;
        if (rp_events_reserve_locked(t, SPARE_EVENTS) != RP_OK)
            return rp_op_end_out_of_memory(t, op);
        evict_one_locked(t, e);
    }
    return RP_READY;
}

/* Refuses an item that would not fit the table or the store even if they were empty. */
static rp_progress refuse_too_large_locked(const rp_table *t, rp_op *op, const rp_insert *item)
    RP_REQUIRES(t->mu)
{
    uint64_t size = item->trajectory->cost, most = t->options.max_bytes;
    const rp_budget *b = t->account.budget;

    if (most > 0 && size > most)
        return rp_op_end(
            op, rp_fail(&op->error, RP_NO_RESOURCE,
                        "table '%.60s': item with key %llu takes %llu bytes, over max_bytes "
                        "%llu of the whole table",
                        t->options.name, (unsigned long long)item->key,
                        (unsigned long long)size, (unsigned long long)most));
    if (b->limit > 0 && size > b->limit)
        return rp_op_end(
            op, rp_fail(&op->error, RP_NO_RESOURCE,
                        "table '%.60s': item with key %llu takes %llu bytes, over max_bytes "
                        "%llu of all tables together",
                        t->options.name, (unsigned long long)item->key,
                        (unsigned long long)size, (unsigned long long)b->limit));
    return RP_READY;
}

static rp_progress refuse_bytes_locked(rp_table *t, rp_op *op, const rp_insert *item)
    RP_REQUIRES(t->mu)
{
    const rp_budget *b = t->account.budget;
    char lost[RP_LOST_TEXT_BYTES];

    return rp_op_end(
        op,
        rp_fail(&op->error, RP_NO_RESOURCE,
                "table '%.60s': item with key %llu takes %zu bytes, and all tables "
                "together take %llu of %llu%s; %s",
                t->options.name, (unsigned long long)item->key, item->trajectory->cost,
                (unsigned long long)rp_budget_used(b), (unsigned long long)b->limit,
                rp_budget_lost_text(b, lost),
                b->policy == RP_BUDGET_EVICT ? "evicting all of this table would not make room"
                                             : "delete items, or raise max_bytes of the server "
                                               "(--max-bytes)"));
}

/* The bytes that an item lacks: in the budget, or in memory for bytes that never go to disk. */
typedef struct shortage {
    uint64_t limit;
    uint64_t cost;  /* of the item */
    uint64_t bytes; /* that it lacks, > 0 */
    uint64_t own;   /* a bound on the bytes that evicting all items of its table would free */
    bool is_small;  /* of bytes that never go to disk */
} shortage;

typedef enum remedy { EVICT, WAIT, REFUSE } remedy;

/* True if the table is full and evicting the next item, which it has to do anyway, is enough to
 * make room for the new one. Changes nothing. */
static bool next_makes_room_locked(rp_table *t, const shortage *s) RP_REQUIRES(t->mu)
{
    const rp_account *a = &t->account;
    rp_rng rng_before = t->rng;
    const rp_trajectory *leaving;
    uint32_t victim;
    double probability;

    if (t->options.soft_limit || t->slots.live < (size_t)t->options.max_size) return false;
    (void)t->remover->ops->pick(t->remover, &t->rng, 1, false, &victim, &probability);
    t->rng = rng_before;
    leaving = rp_slots_at(&t->slots, victim)->trajectory;
    return s->bytes <= (s->is_small ? rp_account_small_gain(a, leaving)
                                    : rp_account_gain(a, leaving, spare_after_locked(t)));
}

/* The bytes that the item would lack if none were lost. */
static uint64_t due_of(const rp_budget *b, const shortage *s)
{
    uint64_t lost = atomic_load(&b->lost);

    return s->bytes > lost ? s->bytes - lost : 0;
}

/* True if, with RP_BUDGET_EVICT, other tables should make room for lost bytes because this
 * table is small or cannot free enough. So fragmentation caused by one table does not evict the
 * items of another. The table still evicts for the bytes that it would lack without the lost
 * ones. A large item might wait for ever and is therefore excluded. */
static bool is_spared(const rp_budget *b, const entering *e, const shortage *s)
{
    uint64_t due = due_of(b, s);

    return b->policy == RP_BUDGET_EVICT && e->may_yield && due < s->bytes && due <= s->own &&
           s->cost <= s->limit / WAITING_SHARE &&
           (s->own < s->bytes || s->own + s->cost < s->limit / SMALL_SHARE);
}

/* Decides what to do about a shortage. Evicts if the policy allows it and enough can be
 * evicted, or if the table must evict an item anyway and that is enough. */
static remedy remedy_locked(rp_table *t, const entering *e, const shortage *s)
    RP_REQUIRES(t->mu)
{
    const rp_budget *b = t->account.budget;
    bool spared = is_spared(b, e, s), evicts = false;

    if (t->slots.live > 0 && b->policy == RP_BUDGET_EVICT)
        evicts = spared ? due_of(b, s) > 0 : s->own >= s->bytes;
    if (evicts || (t->slots.live > 0 && next_makes_room_locked(t, s))) return EVICT;
    return spared || b->policy == RP_BUDGET_BLOCK ? WAIT : REFUSE;
}

static rp_progress wait_for_bytes_locked(rp_table *t) RP_REQUIRES(t->mu)
{
    rp_budget *b = t->account.budget;

    if (b->policy == RP_BUDGET_EVICT) atomic_store(&b->wants_relief, true);
    return RP_BLOCKED;
}

/* Settles the account with the new item in the store's budget. If it does not fit, applies the
 * policy of the budget. */
static rp_progress fit_budget_locked(rp_table *t, rp_op *op, entering *e) RP_REQUIRES(t->mu)
{
    const rp_account *a = &t->account;

    while (!rp_account_settle_within(&t->account, spare_after_locked(t))) {
        size_t spare = spare_after_locked(t);
        shortage s = {
            .limit = a->budget->limit,
            .cost = e->item->trajectory->cost,
            .bytes = rp_account_shortage(a, spare),
            .own = rp_account_most_gain(a->bytes - e->entry.bytes, t->slots.live, spare),
        };

        if (has_evicted_enough_locked(t, e)) return RP_YIELD;
        if (rp_events_reserve_locked(t, SPARE_EVENTS) != RP_OK)
            return rp_op_end_out_of_memory(t, op);
        switch (remedy_locked(t, e, &s)) {
        case EVICT: evict_one_locked(t, e); break;
        case WAIT: return wait_for_bytes_locked(t);
        case REFUSE: return refuse_bytes_locked(t, op, e->item);
        }
    }
    return RP_READY;
}

static rp_progress refuse_small_locked(rp_table *t, rp_op *op, const rp_insert *item)
    RP_REQUIRES(t->mu)
{
    const rp_budget *b = t->account.budget;
    char lost[RP_LOST_TEXT_BYTES];

    return rp_op_end(
        op,
        rp_fail(&op->error, RP_NO_RESOURCE,
                "table '%.60s': item with key %llu takes %zu bytes, and items and chunks below "
                "%d bytes, which never go to disk, take %llu of the %llu in memory%s; %s",
                t->options.name, (unsigned long long)item->key, item->trajectory->cost,
                (int)RP_CHUNK_APART_BYTES, (unsigned long long)rp_account_small(&t->account),
                (unsigned long long)b->spill->limit, rp_budget_lost_text(b, lost),
                b->policy == RP_BUDGET_EVICT
                    ? "evicting all of this table would not make room"
                    : "delete items, raise max_memory, or write larger chunks"));
}

/* Bytes that never go to disk (of items, chunk headers, small chunks) are limited by the memory
 * of the tier. If the item does not fit, applies the policy of the budget. */
static rp_progress fit_small_locked(rp_table *t, rp_op *op, entering *e) RP_REQUIRES(t->mu)
{
    const rp_insert *item = e->item;
    const rp_account *a = &t->account;
    shortage s = {.limit = a->budget->spill->limit,
                  .cost = rp_account_new_bytes(item->trajectory),
                  .is_small = true};

    if (s.cost > s.limit) return RP_READY; /* the caller refuses the item */
    while (rp_account_small(a) > s.limit - s.cost) {
        s.bytes = rp_account_small(a) - (s.limit - s.cost);
        s.own = a->small_bytes;
        if (has_evicted_enough_locked(t, e)) return RP_YIELD;
        if (rp_events_reserve_locked(t, SPARE_EVENTS) != RP_OK)
            return rp_op_end_out_of_memory(t, op);
        switch (remedy_locked(t, e, &s)) {
        case EVICT: evict_one_locked(t, e); break;
        case WAIT: return wait_for_bytes_locked(t);
        case REFUSE: return refuse_small_locked(t, op, item);
        }
    }
    return RP_READY;
}

/* In a store with a disk tier, an item that does not fit into memory waits until chunks have
 * gone to disk. The policy of the budget, which includes bytes on disk, does not apply. */
static rp_progress fit_memory_locked(rp_table *t, rp_op *op, entering *e) RP_REQUIRES(t->mu)
{
    const rp_insert *item = e->item;
    rp_spill *spill = t->account.budget->spill;
    rp_progress now;

    if (rp_account_has_room(&t->account, item->trajectory)) return RP_READY;
    now = fit_small_locked(t, op, e);
    if (now != RP_READY || rp_account_has_room(&t->account, item->trajectory)) return now;
    if (item->trajectory->cost <= spill->limit) {
        rp_account_settle(&t->account, rp_table_spare_locked(t)); /* for make_room() */
        spill->make_room(spill, item->trajectory->cost);
        return RP_BLOCKED;
    }
    return rp_op_end(op, rp_fail(&op->error, RP_NO_RESOURCE,
                                 "table '%.60s': item with key %llu takes %zu bytes, over the "
                                 "%llu that may be in memory at once",
                                 t->options.name, (unsigned long long)item->key,
                                 item->trajectory->cost, (unsigned long long)spill->limit));
}

/* Adds the item to the account if it fits, evicting other items if that is allowed. */
static rp_progress fit_locked(rp_table *t, rp_op *op, const rp_insert *item)
    RP_REQUIRES(t->mu) RP_NO_THREAD_SAFETY_ANALYSIS /* `entry` is locked with a limit only */
{
    rp_budget *b = t->account.budget;
    entering e = {.item = item, .may_yield = op->until_ns != RP_NOW};
    rp_progress now = fit_memory_locked(t, op, &e);

    /* A redo adds an item to the account before the evictions of its record. These evictions
     * came before it, so they get a record of their own. */
    if (e.evictions > 0 && rp_table_log_of(t) != NULL) rp_log_flush_locked(t);
    if (now != RP_READY) return now;
    e.evictions = 0;
    if (b->limit > 0) rp_mutex_lock(&b->entry);
    rp_account_enter(&t->account, item->trajectory, &e.entry);
    now = fit_table_locked(t, op, &e);
    if (now == RP_READY) now = fit_budget_locked(t, op, &e);
    if (now != RP_READY) rp_account_take_back(&t->account, item->trajectory, &e.entry);
    if (b->limit > 0) rp_mutex_unlock(&b->entry);
    if (now != RP_READY && e.evictions > 0 && rp_table_log_of(t) != NULL)
        rp_log_flush_locked(t); /* as above */
    return now;
}

static bool is_byte_limited(const rp_table *t)
{
    return t->options.max_bytes > 0 || t->account.budget->limit > 0 ||
           t->account.budget->spill != NULL;
}

void rp_insert_link_locked(rp_table *t, const rp_insert *item, rp_prepared *p, int64_t wall_ns)
{
    uint32_t number = rp_slots_take(&t->slots);
    rp_slot *slot = rp_slots_at(&t->slots, number);

    assert(rp_mutex_is_held(&t->mu) && p->trajectory != NULL);
    assert(p->tag == rp_map_tag(&t->keys, item->key));
    slot->key = item->key;
    slot->priority = p->weighed.priority;
    slot->trajectory = p->trajectory;
    slot->references = 1;
    p->trajectory = NULL;
    slot->inserted_at_ns = wall_ns;
    slot->turn = t->next_turn++;
    slot->times_sampled = item->times_sampled;
    slot->tag = p->tag;
    rp_map_insert(&t->keys, p->tag, number);
    t->sampler->ops->insert(t->sampler, &number, &p->weighed.sampler_value, 1);
    t->remover->ops->insert(t->remover, &number, &p->weighed.remover_value, 1);
    rp_table_update_max_locked(t, &p->weighed);
    rp_events_add_locked(t, RP_EVENT_INSERT, slot);
    p->evicted = 0;
    if (!t->options.soft_limit)
        for (; t->slots.live > (size_t)t->options.max_size; p->evicted++)
            rp_table_evict_locked(t);
    if (is_byte_limited(t)) rp_table_count_out_locked(t, SIZE_MAX);
    t->limiter.inserts++;
    assert(t->keys.count == t->slots.live);                                    /* T1 */
    assert(t->limiter.inserts - t->limiter.deletes == (int64_t)t->slots.live); /* T5 */
}

/* Adds an item to the account. With a byte limit this is done before the item is inserted;
 * otherwise at the end of its block, in a row (see rp_table_count_out_locked()). */
static rp_progress count_in_locked(rp_table *t, rp_op *op, const rp_insert *item)
    RP_REQUIRES(t->mu)
{
    rp_progress now = refuse_too_large_locked(t, op, item);

    if (now == RP_READY) now = fit_locked(t, op, item);
    if (now == RP_BLOCKED && !t->waits_for_bytes) {
        /* Enter the queue, then try again: bytes that were freed before cause no retry. */
        rp_table_wait_for_bytes_locked(t);
        now = fit_locked(t, op, item);
    }
    if (now != RP_BLOCKED) rp_table_stop_waiting_for_bytes_locked(t);
    return now;
}

static void count_in_block_locked(rp_table *t, const rp_insert *items, const rp_prepared *block,
                                  size_t count) RP_REQUIRES(t->mu)
{
    if (is_byte_limited(t)) return;
    for (size_t i = 0; i < count; i++) {
        if (block[i].trajectory != NULL) continue; /* the table has not taken it */
        rp_account_add(&t->account, items[i].trajectory);
        rp_table_count_out_locked(t, block[i].evicted); /* in the order of the changes */
    }
}

static rp_progress insert_one_locked(rp_table *t, rp_op *op, const rp_insert *item,
                                     rp_prepared *p, int64_t wall_ns) RP_REQUIRES(t->mu)
{
    uint32_t slot = rp_table_find_locked(t, item->key, p->tag);
    bool has_log = rp_table_log_of(t) != NULL;
    rp_progress now = RP_READY;

    if (item->flags & RP_INSERT_MAX_PRIORITY) p->weighed = t->max;
    if (slot != RP_MAP_NONE) { /* the key exists: only its priority changes */
        rp_table_set_priority_locked(t, slot, &p->weighed);
        rp_events_add_locked(t, RP_EVENT_UPDATE, rp_slots_at(&t->slots, slot));
        if (has_log) rp_log_add_inserted_locked(t, item, p->weighed.priority, NULL);
        return RP_READY;
    }
    if (is_byte_limited(t)) now = count_in_locked(t, op, item);
    if (now != RP_READY) return now;
    rp_insert_link_locked(t, item, p, wall_ns);
    if (has_log) rp_log_add_inserted_locked(t, item, p->weighed.priority, item->trajectory);
    return RP_READY;
}

rp_progress rp_insert_block_locked(rp_table *t, rp_op *op, rp_prepared *block, size_t count,
                                   int64_t wall_ns)
{
    const rp_insert *items = op->items + op->done;
    rp_progress now = RP_READY;
    size_t i = 0;

    if (rp_op_is_held_up_locked(t, RP_SIDE_INSERTS)) return RP_BLOCKED;
    /* Try again under the lock: room that came before the lock was acquired causes no retry. */
    if (op->waits_for_disk && prepare_log(t, op, items, count, &op->error) != RP_OK)
        return rp_op_end(op, RP_NO_RESOURCE);
    if (op->waits_for_disk) return RP_BLOCKED;
    if (reserve_locked(t, items, count) != RP_OK) return rp_op_end_out_of_memory(t, op);
    if (count > 1) prefetch_chunks_locked(t, count);
    rp_table_count_out_locked(t, SIZE_MAX); /* items that a sample removed under this lock */
    rp_log_begin_inserts_locked(t, wall_ns);
    t->removed_chunks = 0;
    for (; i < count && now == RP_READY; i++) {
        if (i > 0 && t->removed_chunks > RP_BLOCK_CHUNKS) break;
        now = RP_BLOCKED;
        rp_log_make_room_locked(t);
        if (rp_rate_limiter_can_insert(&t->limiter, 1))
            now = insert_one_locked(t, op, &items[i], &block[i], wall_ns);
        op->done += now == RP_READY;
    }
    assert(op->done <= op->count);
    count_in_block_locked(t, items, block, i);
    if (rp_table_log_of(t) != NULL) {
        rp_log_flush_locked(t);
        op->lsn = t->log_buffer.lsn;
    }
    if (count > 1) prefetch_victims_locked(t, count);
    if (now != RP_READY) return now;
    return op->done == op->count ? rp_op_end(op, RP_OK) : RP_READY;
}

size_t rp_insert_block_size(const rp_op *op, size_t most)
{
    size_t left = op->count - op->done, count = 0, chunks = 0;

    if (left > most) left = most;
    for (; count < left; count++) {
        const rp_trajectory *trajectory = op->items[op->done + count].trajectory;

        if (trajectory == NULL) continue; /* will be refused */
        chunks += trajectory->chunk_count;
        if (chunks > RP_BLOCK_CHUNKS && count > 0) break;
    }
    return count;
}

rp_progress rp_insert_resume_locked(rp_table *t, rp_op *op)
{
    rp_prepared block[64];
    rp_progress now = RP_READY;
    size_t begin = op->done, most = op->waits_for_disk ? 1 : 64; /* room for one may exist */

    assert(op->parked && op->is_insert);

    while (now == RP_READY) {
        size_t first = op->done, count = rp_insert_block_size(op, most);

        if (first - begin >= RP_BLOCK || (first > begin && t->removed_chunks > RP_BLOCK_CHUNKS))
            return RP_YIELD;
        if (rp_op_is_held_up_locked(t, RP_SIDE_INSERTS) ||
            !rp_rate_limiter_can_insert(&t->limiter, 1))
            return RP_BLOCKED; /* before the work */
        if (!rp_rate_limiter_can_insert(&t->limiter, (int64_t)count)) count = 1;
        if (rp_insert_prepare(t, op, first, count, block, &op->error) != RP_OK)
            return rp_op_end(op, op->error.code);
        now = rp_insert_block_locked(t, op, block, count, t->wall_ns(t->wall_ctx));
        rp_insert_clean_up(block, count, op->done - first);
        rp_account_publish(&t->account, rp_table_spare_locked(t));
        rp_insert_unclaim(t, op->claimed);
        op->claimed = 0;
    }
    return now;
}

rp_status rp_insert_check(const rp_table *t, rp_op *op, size_t block_size)
{
    size_t bad;

    if (block_size == op->count) return RP_OK;
    bad = find_bad(t, op->items, op->count);
    if (bad == op->count) return RP_OK;
    explain_bad(t, &op->items[bad], bad, &op->error);
    op->refused = bad;
    return RP_INVALID;
}
