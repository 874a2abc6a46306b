/* SPDX-License-Identifier: Apache-2.0 */
/* Inserts and samples: run at once, or parked until they can.
 *
 *            start                      withdraw, expire, close
 *   (owner) ------> run ---> over  <------------------------+
 *                    |                                      |
 *                    +----> parked --- pump: run again -----+---> over, on_done
 *
 * Parked operations stand in two queues, inserts and samples, first come first served. Whoever
 * changes the table pumps: runs the first insert as far as it gets, then the first sample,
 * until neither moves. Operations that are over are collected and their owners called without
 * the lock (rp_table_leave()).
 *
 * An operation runs in steps that each leave the table consistent, so it may stop between any
 * two items and go on later: op->done says how far it is. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chunk/trajectory.h"
#include "table/table.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    BLOCK = 256,
    SPARE_EVENTS = 2 * BLOCK + 1, /* one eviction, and the rest of a block after it */
    SPARE_REFERENCES = 1 << 12,   /* that a slot takes at a time, to hand out */
};

typedef enum progress {
    OVER,    /* op->status is set */
    BLOCKED, /* must wait */
    READY,   /* this block is done, there is more */
} progress;

static progress end(rp_op *op, rp_status status)
{
    op->status = status;
    return OVER;
}

static progress end_out_of_memory(const rp_table *t, rp_op *op)
{
    return end(
        op, rp_fail(&op->error, RP_NO_RESOURCE, "table '%s': out of memory", t->options.name));
}

/* --- inserting ------------------------------------------------------------------------------------ */

typedef struct prepared {
    rp_weighed weighed;
    uint32_t tag;
    rp_trajectory *trajectory; /* a reference for the table, until it has taken it */
    bool is_offered;           /* that reference is the owner's own */
    size_t evicted;            /* how many items had to go for it */
} prepared;

/* The sentence for an item that check_item() refuses. */
static rp_status refuse_item(const rp_table *t, const rp_insert *item, size_t index,
                             rp_error *err)
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
        if (st == RP_OK) st = rp_budget_adopt(t->account.budget, item->trajectory, &why);
    }
    return rp_fail(err, st, "table '%.60s': item %zu, key %llu: %.140s", t->options.name, index,
                   (unsigned long long)item->key, why.text);
}

static bool check_item(const rp_table *t, const rp_insert *item)
{
    const rp_signature *signature = t->options.signature;

    if (item->trajectory == NULL || item->times_sampled < 0) return false;
    if (signature != NULL && rp_trajectory_check(item->trajectory, signature, NULL) != RP_OK)
        return false;
    return rp_budget_adopt(t->account.budget, item->trajectory, NULL) == RP_OK;
}

/* Drops the references that the table did not need, of a block of which the first `done` items
 * have been dealt with. What its owner offered and was not dealt with stays his. */
static void clean_up(const prepared *block, size_t count, size_t done)
{
    for (size_t i = 0; i < count; i++)
        if (i < done || !block[i].is_offered) rp_trajectory_unref(block[i].trajectory);
}

/* Weighs the priorities of a block; the largest one's weight is filled in later. */
static bool weigh_block(const rp_table *t, const rp_insert *items, size_t count,
                        prepared *block)
{
    double priorities[BLOCK], sampler_values[BLOCK], remover_values[BLOCK];

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
    prepared ignored;

    for (size_t i = 0; i < count; i++)
        if (!check_item(t, &items[i]) || !weigh_block(t, &items[i], 1, &ignored)) return i;
    return count;
}

/* Everything about a block of items that needs no lock. After success, clean_up(). A parked
 * operation does not take what is offered, but drops it when it is over: then there is no lock
 * (L2). */
static rp_status prepare(const rp_table *t, const rp_op *op, size_t first, size_t count,
                         prepared *block, rp_error *err)
{
    const rp_insert *items = op->items + first;
    bool ok = weigh_block(t, items, count, block);

    for (size_t i = 0; i < count && ok; i++) {
        block[i].tag = rp_map_tag(&t->keys, items[i].key);
        rp_map_prefetch_unlocked(&t->keys, block[i].tag);
        ok = check_item(t, &items[i]);
    }
    if (!ok) {
        size_t bad = find_bad(t, items, count);
        return refuse_item(t, &items[bad], first + bad, err);
    }
    for (size_t i = 0; i < count; i++) {
        block[i].trajectory = items[i].trajectory;
        block[i].is_offered = (items[i].flags & RP_INSERT_TAKE) != 0 && !op->was_parked;
        if (!block[i].is_offered) (void)rp_trajectory_ref(items[i].trajectory);
    }
    return RP_OK;
}

void rp_table_drop_offered(const rp_op *op)
{
    if (!op->is_insert || !op->was_parked) return;
    for (size_t i = op->parked_at; i < op->done; i++)
        if (op->items[i].flags & RP_INSERT_TAKE) rp_trajectory_unref(op->items[i].trajectory);
}

/* Every allocation that inserting `count` items may need (T3). */
static rp_status reserve_locked(rp_table *t, const rp_insert *items, size_t count)
    RP_REQUIRES(t->mu)
{
    size_t chunks = 0;

    for (size_t i = 0; i < count; i++) chunks += items[i].trajectory->chunk_count;
    if (rp_slots_reserve(&t->slots, count, (size_t)t->options.max_size + BLOCK) != RP_OK ||
        rp_map_reserve(&t->keys, count) != RP_OK ||
        t->sampler->ops->reserve(t->sampler, t->slots.capacity) != RP_OK ||
        t->remover->ops->reserve(t->remover, t->slots.capacity) != RP_OK ||
        rp_account_reserve(&t->account, chunks) != RP_OK)
        return RP_NO_RESOURCE;
    return rp_events_reserve_locked(t, 2 * count);
}

/* Which items the next `count` inserts will evict, if that can be known. */
static size_t next_victims_locked(const rp_table *t, size_t count, uint32_t *victims)
    RP_REQUIRES(t->mu)
{
    if (t->slots.live + count <= (size_t)t->options.max_size) return 0;
    if (t->options.soft_limit || t->remover->ops->upcoming == NULL) return 0;
    return t->remover->ops->upcoming(t->remover, count, victims);
}

/* Fetches the first of what evicting the next `count` items will touch: they will be wanted by
 * the next call, if it is an insert like this one, and there is time until then. */
static void prefetch_victims_locked(const rp_table *t, size_t count) RP_REQUIRES(t->mu)
{
    uint32_t victims[BLOCK];
    size_t n = next_victims_locked(t, count, victims);

    for (size_t i = 0; i < n; i++) {
        const rp_slot *slot = rp_slots_at(&t->slots, victims[i]);
        __builtin_prefetch(slot->trajectory, 1);
        rp_map_prefetch(&t->keys, slot->tag);
    }
}

/* Fetches the chunks of the items that inserting a block will evict; their trajectories were
 * fetched before, and the map's lines by prepare(). */
static void prefetch_chunks_locked(const rp_table *t, size_t count) RP_REQUIRES(t->mu)
{
    uint32_t victims[BLOCK];
    size_t n = next_victims_locked(t, count, victims);

    if (n == 0) return;
    if (t->sampler->ops->prefetch != NULL) t->sampler->ops->prefetch(t->sampler, victims, n);
    for (size_t i = 0; i < n; i++)
        __builtin_prefetch(rp_slots_at(&t->slots, victims[i])->trajectory->chunks[0], 1);
}

/* Makes room for an item's bytes under the table's own limit, by eviction. */
static progress fit_table_locked(rp_table *t, rp_op *op, const rp_insert *item)
    RP_REQUIRES(t->mu)
{
    uint64_t limit = t->options.max_bytes, size = rp_trajectory_bytes(item->trajectory);

    if (limit == 0) return READY;
    if (size > limit)
        return end(op,
                   rp_fail(&op->error, RP_NO_RESOURCE,
                           "table '%.60s': item with key %llu has %llu bytes, over max_bytes "
                           "%llu of the whole table",
                           t->options.name, (unsigned long long)item->key,
                           (unsigned long long)size, (unsigned long long)limit));
    while (t->account.bytes + rp_account_cost(&t->account, item->trajectory) > limit) {
        if (rp_events_reserve_locked(t, SPARE_EVENTS) != RP_OK) return end_out_of_memory(t, op);
        rp_table_evict_locked(t);
        rp_table_count_out_locked(t, SIZE_MAX);
    }
    return READY;
}

static progress refuse_bytes_locked(rp_table *t, rp_op *op, const rp_insert *item)
    RP_REQUIRES(t->mu)
{
    const rp_budget *b = t->account.budget;

    return end(op,
               rp_fail(&op->error, RP_NO_RESOURCE,
                       "table '%.60s': item with key %llu has %zu bytes, and all tables "
                       "together hold %llu of %llu; %s",
                       t->options.name, (unsigned long long)item->key,
                       rp_trajectory_bytes(item->trajectory),
                       (unsigned long long)atomic_load(&b->used), (unsigned long long)b->limit,
                       b->policy == RP_BUDGET_EVICT
                           ? "evicting all of this table would not make room"
                           : "delete items or raise the budget"));
}

/* Evicts one item to make room in the budget, if that is right: because the policy says so and
 * it can help, or because the table is full and has to evict one anyway, and that alone makes
 * room. */
static bool evict_for_budget_locked(rp_table *t, const rp_insert *item) RP_REQUIRES(t->mu)
{
    rp_budget *b = t->account.budget;
    uint64_t shortage = rp_budget_shortage(b, item->trajectory);
    bool is_full = !t->options.soft_limit && t->slots.live >= (size_t)t->options.max_size;
    uint32_t victim;
    double probability;

    if (t->slots.live == 0) return false;
    if (b->policy == RP_BUDGET_EVICT ? shortage > t->account.bytes : !is_full) return false;
    (void)t->remover->ops->pick(t->remover, &t->rng, 1, false, &victim, &probability);
    if (b->policy != RP_BUDGET_EVICT &&
        rp_account_gain(&t->account, rp_slots_at(&t->slots, victim)->trajectory) < shortage)
        return false;
    rp_table_remove_locked(t, victim);
    t->evictions++;
    rp_table_count_out_locked(t, SIZE_MAX);
    return true;
}

/* Counts the item's bytes in the store's budget, doing what its policy says if they do not fit.
 */
static progress fit_budget_locked(rp_table *t, rp_op *op, const rp_insert *item)
    RP_REQUIRES(t->mu)
{
    const rp_budget *b = t->account.budget;

    while (!rp_account_add(&t->account, item->trajectory)) {
        if (rp_events_reserve_locked(t, SPARE_EVENTS) != RP_OK) return end_out_of_memory(t, op);
        if (evict_for_budget_locked(t, item)) continue;
        if (b->policy != RP_BUDGET_BLOCK || rp_trajectory_bytes(item->trajectory) > b->limit)
            return refuse_bytes_locked(t, op, item);
        return BLOCKED;
    }
    return READY;
}

static bool is_byte_limited(const rp_table *t)
{
    return t->options.max_bytes > 0 || t->account.budget->limit > 0;
}

/* Puts an item into a slot. Cannot fail. */
static void link_locked(rp_table *t, const rp_insert *item, prepared *p, int64_t wall_ns)
    RP_REQUIRES(t->mu)
{
    uint32_t number = rp_slots_take(&t->slots);
    rp_slot *slot = rp_slots_at(&t->slots, number);

    slot->key = item->key;
    slot->priority = p->weighed.priority;
    slot->trajectory = p->trajectory;
    slot->references = 1;
    p->trajectory = NULL;
    slot->inserted_at_ns = wall_ns;
    slot->times_sampled = item->times_sampled;
    slot->tag = p->tag;
    rp_map_insert(&t->keys, p->tag, number);
    t->sampler->ops->insert(t->sampler, &number, &p->weighed.sampler_value, 1);
    t->remover->ops->insert(t->remover, &number, &p->weighed.remover_value, 1);
    rp_table_note_priority_locked(t, &p->weighed);
    rp_events_add_locked(t, RP_EVENT_INSERT, slot);
    p->evicted = 0;
    if (!t->options.soft_limit)
        for (; t->slots.live > (size_t)t->options.max_size; p->evicted++)
            rp_table_evict_locked(t);
    if (is_byte_limited(t)) rp_table_count_out_locked(t, SIZE_MAX);
    t->limiter.inserts++;
}

/* Bytes of an item are counted as it goes in if there is a limit to keep; otherwise at the end
 * of its block, in a row (see rp_table_count_out_locked()). */
static progress count_in_locked(rp_table *t, rp_op *op, const rp_insert *item)
    RP_REQUIRES(t->mu)
{
    progress now = READY;

    if (t->options.max_bytes > 0) now = fit_table_locked(t, op, item);
    if (now == READY) now = fit_budget_locked(t, op, item);
    if (now == BLOCKED && !t->waits_for_bytes) {
        /* Announce it, then look again: bytes freed before that would go unnoticed. */
        t->waits_for_bytes = true;
        (void)atomic_fetch_add(&t->account.budget->waiting, 1);
        now = fit_budget_locked(t, op, item);
    }
    if (now != BLOCKED && t->waits_for_bytes) {
        t->waits_for_bytes = false;
        (void)atomic_fetch_sub(&t->account.budget->waiting, 1);
    }
    return now;
}

static void count_in_block_locked(rp_table *t, const rp_insert *items, const prepared *block,
                                  size_t count) RP_REQUIRES(t->mu)
{
    if (is_byte_limited(t)) return;
    for (size_t i = 0; i < count; i++) {
        if (block[i].trajectory != NULL) continue; /* the table has not taken it */
        (void)rp_account_add(&t->account, items[i].trajectory);
        rp_table_count_out_locked(t, block[i].evicted); /* in the order it happened */
    }
}

static progress insert_one_locked(rp_table *t, rp_op *op, const rp_insert *item, prepared *p,
                                  int64_t wall_ns) RP_REQUIRES(t->mu)
{
    uint32_t slot = rp_table_find_locked(t, item->key, p->tag);
    progress now = READY;

    if (item->flags & RP_INSERT_MAX_PRIORITY)
        p->weighed = (rp_weighed){t->max_priority, t->max_sampler_value, t->max_remover_value};
    if (slot != RP_MAP_NONE) { /* the key is there: only its priority changes */
        rp_table_set_priority_locked(t, slot, &p->weighed);
        rp_events_add_locked(t, RP_EVENT_UPDATE, rp_slots_at(&t->slots, slot));
        return READY;
    }
    if (is_byte_limited(t)) now = count_in_locked(t, op, item);
    if (now == READY) link_locked(t, item, p, wall_ns);
    return now;
}

static bool is_behind_locked(const rp_table *t) RP_REQUIRES(t->mu)
{
    return t->events.deferred_count >= RP_MAX_DEFERRED_EVENTS;
}

/* Inserts a block of the operation's items, from op->done on. */
static progress insert_block_locked(rp_table *t, rp_op *op, prepared *block, size_t count,
                                    int64_t wall_ns) RP_REQUIRES(t->mu)
{
    const rp_insert *items = op->items + op->done;
    progress now = READY;
    size_t i = 0;

    if (is_behind_locked(t)) return BLOCKED;
    if (reserve_locked(t, items, count) != RP_OK) return end_out_of_memory(t, op);
    if (count > 1) prefetch_chunks_locked(t, count);
    for (; i < count && now == READY; i++) {
        now = BLOCKED;
        if (rp_rate_limiter_can_insert(&t->limiter, 1))
            now = insert_one_locked(t, op, &items[i], &block[i], wall_ns);
        op->done += now == READY;
    }
    count_in_block_locked(t, items, block, i);
    if (count > 1) prefetch_victims_locked(t, count);
    if (now != READY) return now;
    return op->done == op->count ? end(op, RP_OK) : READY;
}

/* Goes on with a parked insert. */
static progress resume_insert_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu)
{
    prepared block[64];
    progress now = READY;

    while (now == READY) {
        size_t first = op->done, left = op->count - first, count = left < 64 ? left : 64;

        if (!rp_rate_limiter_can_insert(&t->limiter, 1)) return BLOCKED; /* before the work */
        if (prepare(t, op, first, count, block, &op->error) != RP_OK)
            return end(op, op->error.code);
        now = insert_block_locked(t, op, block, count, t->wall_ns(t->wall_ctx));
        clean_up(block, count, op->done - first);
    }
    return now;
}

/* --- sampling ------------------------------------------------------------------------------------- */

static rp_status reserve_draws_locked(rp_table *t, size_t count) RP_REQUIRES(t->mu)
{
    size_t capacity = t->picked_capacity < BLOCK ? BLOCK : t->picked_capacity;
    uint32_t *picked;
    double *probability;

    if (rp_events_reserve_locked(t, 2 * count) != RP_OK) return RP_NO_RESOURCE;
    if (count <= t->picked_capacity) return RP_OK;
    while (capacity < count) capacity *= 2;
    picked = rp_alloc_array(&t->alloc, capacity, sizeof *picked);
    probability = rp_alloc_array(&t->alloc, capacity, sizeof *probability);
    if (picked == NULL || probability == NULL) {
        rp_release(&t->alloc, picked, capacity * sizeof *picked);
        rp_release(&t->alloc, probability, capacity * sizeof *probability);
        return RP_NO_RESOURCE;
    }
    rp_release(&t->alloc, t->picked, t->picked_capacity * sizeof *picked);
    rp_release(&t->alloc, t->picked_probability, t->picked_capacity * sizeof *probability);
    t->picked = picked;
    t->picked_probability = probability;
    t->picked_capacity = capacity;
    return RP_OK;
}

/* Hands out the item in a slot. */
static void hand_out_locked(rp_table *t, rp_op *op, uint32_t number, double probability)
    RP_REQUIRES(t->mu)
{
    rp_slot *slot = rp_slots_at(&t->slots, number);

    if (slot->references == 1) {
        (void)rp_trajectory_ref_many(slot->trajectory, SPARE_REFERENCES);
        slot->references += SPARE_REFERENCES;
    }
    slot->references--;
    t->unique_samples += slot->times_sampled == 0;
    if (slot->times_sampled < INT32_MAX) slot->times_sampled++; /* it may have been given */
    t->limiter.samples++;
    op->samples[op->done++] = (rp_sample){
        .key = slot->key,
        .priority = slot->priority,
        .probability = probability,
        .weight = 1,
        .trajectory = slot->trajectory,
        .table_size = (int64_t)t->slots.live,
        .inserted_at_ns = slot->inserted_at_ns,
        .times_sampled = slot->times_sampled,
        .rate_limited = op->was_parked,
    };
    rp_events_add_locked(t, RP_EVENT_SAMPLE, slot);
    if (t->options.max_times_sampled > 0 && slot->times_sampled == t->options.max_times_sampled)
        rp_table_remove_locked(t, number);
}

static size_t pick_locked(rp_table *t, size_t from, size_t to, bool distinct) RP_REQUIRES(t->mu)
{
    return t->sampler->ops->pick(t->sampler, &t->rng, to - from, distinct, t->picked + from,
                                 t->picked_probability + from);
}

/* Draws `count` items of one moment. Removing on the way would change what the later draws
 * mean, so with max_times_sampled the caller asks for one, unless they are distinct.
 *
 * An assembly line of three stations, a part of the batch in each: while one part is drawn, the
 * slots of the one before and the trajectories of the one before that are on their way here. */
static void draw_locked(rp_table *t, rp_op *op, size_t count) RP_REQUIRES(t->mu)
{
    enum { PART = 64 };
    const uint32_t *picked = t->picked;
    bool distinct = op->options->distinct;

    if (distinct) count = pick_locked(t, 0, count, true); /* these cannot be drawn in parts */
    for (size_t from = 0; from < count + 2 * PART; from += PART) {
        size_t to = from + PART < count ? from + PART : count, i;

        if (from < count && !distinct) (void)pick_locked(t, from, to, false);
        for (i = from; i < to; i++) __builtin_prefetch(rp_slots_at(&t->slots, picked[i]), 1);
        if (from < PART) continue;
        for (i = from - PART; i < from && i < count; i++)
            if (rp_slots_at(&t->slots, picked[i])->references == 1)
                __builtin_prefetch(rp_slots_at(&t->slots, picked[i])->trajectory, 1);
        if (from < 2 * PART) continue;
        for (i = from - 2 * PART; i < from - PART && i < count; i++)
            hand_out_locked(t, op, picked[i], t->picked_probability[i]);
    }
}

static size_t least(const rp_op *op)
{
    return op->options->at_least > 0 ? op->options->at_least : op->options->count;
}

/* A distinct batch is drawn at one moment or not at all. */
static progress sample_distinct_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu)
{
    size_t most = op->options->count, need = least(op), allowed;

    if (most > t->slots.live) most = t->slots.live; /* the table gives what it has */
    if (need > most) need = most;
    allowed = rp_rate_limiter_samples_allowed(&t->limiter, most);
    if (allowed == 0 || allowed < need) return BLOCKED;
    draw_locked(t, op, allowed);
    return end(op, RP_OK);
}

static progress run_sample_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu)
{
    size_t wanted = op->options->count - op->done;

    if (is_behind_locked(t)) return BLOCKED;
    if (!rp_rate_limiter_can_sample(&t->limiter, 1))
        return op->done >= least(op) ? end(op, RP_OK) : BLOCKED;
    if (reserve_draws_locked(t, wanted) != RP_OK) return end_out_of_memory(t, op);
    if (op->options->distinct) return sample_distinct_locked(t, op);
    if (t->options.max_times_sampled > 0)
        for (; wanted > 0 && rp_rate_limiter_can_sample(&t->limiter, 1); wanted--)
            draw_locked(t, op, 1);
    else
        draw_locked(t, op, rp_rate_limiter_samples_allowed(&t->limiter, wanted));
    return op->done >= least(op) ? end(op, RP_OK) : BLOCKED;
}

/* --- parking -------------------------------------------------------------------------------------- */

static rp_queue *queue_of(rp_table *t, const rp_op *op)
{
    return op->is_insert ? &t->inserts : &t->samples;
}

static void park_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu)
{
    rp_queue *q = queue_of(t, op);

    op->parked = op->was_parked = true;
    op->parked_at = op->done;
    op->started_ns = rp_now_ns();
    op->prev = q->last;
    op->next = NULL;
    *(q->last == NULL ? &q->first : &q->last->next) = op;
    q->last = op;
    q->count++;
}

/* Nobody does any more. */
static void stop_waiting_for_bytes_locked(rp_table *t) RP_REQUIRES(t->mu)
{
    if (!t->waits_for_bytes) return;
    t->waits_for_bytes = false;
    (void)atomic_fetch_sub(&t->account.budget->waiting, 1);
}

static void unpark_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu)
{
    rp_queue *q = queue_of(t, op);

    *(op->prev == NULL ? &q->first : &op->prev->next) = op->next;
    *(op->next == NULL ? &q->last : &op->next->prev) = op->prev;
    q->count--;
    op->parked = false;
    op->prev = op->next = NULL;
    if (op->is_insert && q->count == 0) stop_waiting_for_bytes_locked(t);
}

/* Unparks an operation that is over and lists it for its owner to be called. */
static void finish_parked_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu)
{
    unpark_locked(t, op);
    *(t->finished == NULL ? &t->finished : &t->finished_last->next) = op;
    t->finished_last = op;
}

/* Runs the first of a queue, and the next if it is over. True if anything changed. */
static bool pump_queue_locked(rp_table *t, rp_queue *q) RP_REQUIRES(t->mu)
{
    bool moved = false;

    while (q->first != NULL) {
        rp_op *op = q->first;
        size_t done = op->done;
        progress now = op->is_insert ? resume_insert_locked(t, op) : run_sample_locked(t, op);

        moved |= op->done != done || now == OVER;
        if (now != OVER) break;
        finish_parked_locked(t, op);
    }
    return moved;
}

void rp_table_pump_locked(rp_table *t)
{
    bool moved = t->inserts.count > 0 || t->samples.count > 0;

    while (moved) {
        moved = pump_queue_locked(t, &t->inserts);
        moved |= pump_queue_locked(t, &t->samples);
    }
}

/* Why the operation cannot go ahead, if it were first in line. */
static char *why_blocked_locked(rp_table *t, const rp_op *op, char *text, size_t size)
    RP_REQUIRES(t->mu)
{
    const rp_budget *b = t->account.budget;

    if (is_behind_locked(t))
        (void)snprintf(text, size, "deferred extensions are %zu events behind, the bound is %d",
                       t->events.deferred_count, RP_MAX_DEFERRED_EVENTS);
    else if (op->is_insert && !rp_rate_limiter_can_insert(&t->limiter, 1))
        (void)rp_rate_limiter_why_no_insert(&t->limiter, text, size);
    else if (op->is_insert)
        (void)snprintf(
            text, size,
            "insert waits for bytes: all tables together hold %llu of %llu; deletes or "
            "evictions would release it",
            (unsigned long long)atomic_load(&b->used), (unsigned long long)b->limit);
    else if (t->options.max_size < t->limiter.options.min_size && !t->options.soft_limit)
        (void)snprintf(
            text, size,
            "sample waits for %lld items, but max_size is %lld: it will wait for ever",
            (long long)t->limiter.options.min_size, (long long)t->options.max_size);
    else if (!rp_rate_limiter_can_sample(&t->limiter, 1))
        (void)rp_rate_limiter_why_no_sample(&t->limiter, text, size);
    else
        (void)snprintf(
            text, size,
            "sample waits to draw %zu distinct items at once, and the limiter allows "
            "%zu; ask for at_least fewer, or insert more",
            least(op), rp_rate_limiter_samples_allowed(&t->limiter, op->options->count));
    return text;
}

char *rp_table_why_locked(rp_table *t, const rp_op *op, char *text, size_t size)
{
    const rp_queue *q = queue_of(t, op);
    size_t ahead = op->parked ? 0 : q->count, used;

    for (const rp_op *other = op->prev; op->parked && other != NULL; other = other->prev)
        ahead++;
    text[0] = '\0';
    if (ahead > 0) (void)snprintf(text, size, "%zu others wait ahead; ", ahead);
    used = strlen(text);
    (void)why_blocked_locked(t, ahead > 0 && q->first != NULL ? q->first : op, text + used,
                             size - used);
    return text;
}

/* Ends an operation that will not go on. What a sample has drawn is not taken back: then it is
 * fine. */
static void give_up_locked(rp_table *t, rp_op *op, rp_status status, const char *what)
    RP_REQUIRES(t->mu)
{
    char why[RP_ERROR_TEXT_BYTES];

    if (!op->is_insert && op->done > 0) {
        (void)end(op, RP_OK);
        return;
    }
    (void)rp_table_why_locked(t, op, why, sizeof why);
    op->status =
        rp_fail(&op->error, status, "table '%.60s' %s: %.180s", t->options.name, what, why);
}

static const char *what_happened(rp_status status)
{
    return status == RP_DEADLINE ? "timed out" : "wait was ended";
}

void rp_table_fail_parked_locked(rp_table *t, rp_status status, const char *text)
{
    rp_queue *queues[] = {&t->inserts, &t->samples};

    for (int i = 0; i < 2; i++)
        while (queues[i]->first != NULL) {
            rp_op *op = queues[i]->first;
            give_up_locked(t, op, status, text);
            finish_parked_locked(t, op);
        }
}

/* --- starting and stopping ------------------------------------------------------------------------- */

/* Parks an operation that cannot go ahead, or ends it if it is not to wait. True if it is over.
 */
static bool wait_or_end_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu)
{
    if (op->until_ns != RP_NOW) {
        park_locked(t, op);
        return false;
    }
    give_up_locked(t, op, RP_DEADLINE, "would have to wait");
    if (t->inserts.count == 0) stop_waiting_for_bytes_locked(t);
    return true;
}

static bool refuse_closed_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu)
{
    if (!t->closed) return false;
    op->status = rp_fail(&op->error, RP_CANCELLED, "table '%s' is closed", t->options.name);
    return true;
}

static void begin(rp_table *t, rp_op *op, bool is_insert)
{
    op->table = t;
    op->is_insert = is_insert;
    op->done = 0;
    op->status = RP_OK;
    op->parked = op->was_parked = false;
    op->prev = op->next = NULL;
}

/* Checks items before the first is inserted. A single block is checked by preparing it. */
static rp_status check_items(const rp_table *t, rp_op *op)
{
    size_t bad;

    if (op->count > RP_MAX_BATCH)
        return rp_fail(&op->error, RP_INVALID,
                       "table '%s': %zu items in one call, the bound is %d", t->options.name,
                       op->count, RP_MAX_BATCH);
    if (op->count <= BLOCK) return RP_OK;
    bad = find_bad(t, op->items, op->count);
    return bad == op->count ? RP_OK : refuse_item(t, &op->items[bad], bad, &op->error);
}

bool rp_table_start_insert(rp_table *t, rp_op *op)
{
    prepared block[BLOCK];
    bool over = false, parked = false;

    begin(t, op, true);
    op->status = check_items(t, op);
    if (op->status != RP_OK || op->count == 0) return true;
    while (!over && !parked) {
        size_t first = op->done, left = op->count - first, done;
        size_t count = left < BLOCK ? left : BLOCK;
        int64_t wall_ns = t->wall_ns(t->wall_ctx);
        progress now = BLOCKED;

        op->status = prepare(t, op, first, count, block, &op->error);
        if (op->status != RP_OK) return true;
        rp_mutex_lock(&t->mu);
        over = refuse_closed_locked(t, op);
        if (!over && t->inserts.count == 0)
            now = insert_block_locked(t, op, block, count, wall_ns);
        done = op->done - first;
        if (!over && now == BLOCKED) {
            over = wait_or_end_locked(t, op);
            parked = !over;
        }
        over |= now == OVER;
        rp_table_leave(t); /* if parked, the operation may be gone from here on */
        clean_up(block, count, done);
    }
    return over;
}

static rp_status check_sample(const rp_table *t, rp_op *op)
{
    const rp_sample_options *o = op->options;

    if (o->count < 1 || o->count > RP_MAX_BATCH)
        return rp_fail(&op->error, RP_INVALID,
                       "table '%s': the number of samples must be in 1 .. %d, got %zu",
                       t->options.name, RP_MAX_BATCH, o->count);
    if (o->at_least > o->count)
        return rp_fail(&op->error, RP_INVALID,
                       "table '%s': at_least is %zu, over the count %zu", t->options.name,
                       o->at_least, o->count);
    if (!(o->beta >= 0) || isinf(o->beta))
        return rp_fail(&op->error, RP_INVALID,
                       "table '%s': beta must be finite and >= 0, got %g", t->options.name,
                       o->beta);
    return RP_OK;
}

bool rp_table_start_sample(rp_table *t, rp_op *op)
{
    progress now = BLOCKED;
    bool over;

    begin(t, op, false);
    op->status = check_sample(t, op);
    if (op->status != RP_OK) return true;
    rp_mutex_lock(&t->mu);
    over = refuse_closed_locked(t, op);
    if (!over && t->samples.count == 0) now = run_sample_locked(t, op);
    if (!over) over = now == OVER || wait_or_end_locked(t, op);
    rp_table_leave(t);
    return over;
}

bool rp_op_withdraw(rp_op *op, rp_status status)
{
    rp_table *t = op->table;
    bool was_parked;

    rp_mutex_lock(&t->mu);
    was_parked = op->parked;
    if (was_parked) {
        give_up_locked(t, op, status, what_happened(status));
        unpark_locked(t, op);
    }
    rp_table_leave(t); /* others may have waited behind it */
    if (was_parked) rp_table_drop_offered(op);
    return was_parked;
}

int64_t rp_table_expire(rp_table *t, int64_t now_ns)
{
    rp_queue *queues[] = {&t->inserts, &t->samples};
    int64_t earliest = RP_FOREVER;

    rp_mutex_lock(&t->mu);
    for (int i = 0; i < 2; i++)
        for (rp_op *op = queues[i]->first, *next; op != NULL; op = next) {
            next = op->next;
            if (op->until_ns <= now_ns) {
                give_up_locked(t, op, RP_DEADLINE, what_happened(RP_DEADLINE));
                finish_parked_locked(t, op);
            } else if (op->until_ns < earliest) {
                earliest = op->until_ns;
            }
        }
    rp_table_leave(t);
    return earliest;
}

size_t rp_table_waiting(rp_table *t, rp_waiting *out, size_t capacity)
{
    rp_queue *queues[] = {&t->inserts, &t->samples};
    int64_t now_ns = rp_now_ns();
    size_t n = 0;

    rp_mutex_lock(&t->mu);
    for (int i = 0; i < 2; i++)
        for (const rp_op *op = queues[i]->first; op != NULL; op = op->next, n++) {
            if (n >= capacity) continue;
            out[n] = (rp_waiting){
                .is_insert = op->is_insert,
                .wanted = op->is_insert ? op->count : op->options->count,
                .done = op->done,
                .waiting_ns = now_ns - op->started_ns,
                .until_ns = op->until_ns,
            };
            (void)rp_table_why_locked(t, op, out[n].why, sizeof out[n].why);
        }
    rp_mutex_unlock(&t->mu);
    return n;
}
