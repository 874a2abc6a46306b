/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing samples: as many as the rate limiter allows, in one batch if drawing removes no item.
 *
 * Invariants of an operation with a limit (`room`):
 *   D1  held_bytes is the cost of the items drawn, plus more_bytes;
 *   D2  more_bytes is 0 when the lock is released. */
#include <assert.h>
#include <float.h>
#include <math.h>

#include "chunk/trajectory.h"
#include "table/operation/operation.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    SPARE_REFERENCES = 1 << 12, /* references that a slot takes at a time, for samples */
    ROOM_AHEAD = 1 << 20,       /* bytes of `room` taken at a time for single draws */
    DRAWN_AT_ONCE = 1 << 12,    /* items per acquisition of the lock, for an operation with a
                                   `room` */
};

rp_status rp_sample_check(const rp_table *t, rp_op *op)
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

static rp_status reserve_draws_locked(rp_table *t, size_t count) RP_REQUIRES(t->mu)
{
    size_t capacity = t->picked_capacity < RP_BLOCK ? RP_BLOCK : t->picked_capacity;
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

/* True if an item that has just been sampled must be removed. */
static bool is_used_up_locked(const rp_table *t, const rp_slot *slot) RP_REQUIRES(t->mu)
{
    int32_t most = t->options.max_times_sampled;

    if (most == 0 || slot->times_sampled < most) return false;
    return slot->times_sampled == most || t->times_altered;
}

/* Counts a draw of an item. */
static void count_draw_locked(rp_table *t, rp_slot *slot) RP_REQUIRES(t->mu)
{
    t->unique_samples += slot->times_sampled == 0;
    assert(slot->state == RP_SLOT_LIVE);
    if (slot->times_sampled < INT32_MAX)
        slot->times_sampled++; /* an insert may set INT32_MAX */
    t->limiter.samples++;
}

/* Adds the item in a slot to the samples of an operation. */
static void hand_out_locked(rp_table *t, rp_op *op, uint32_t number, double probability)
    RP_REQUIRES(t->mu)
{
    rp_slot *slot = rp_slots_change(&t->slots, number);

    assert(op->done < op->options->count && slot->references >= 1);
    if (slot->references == 1) {
        (void)rp_trajectory_ref_many(slot->trajectory, SPARE_REFERENCES);
        slot->references += SPARE_REFERENCES;
    }
    slot->references--;
    count_draw_locked(t, slot);
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
    if (is_used_up_locked(t, slot)) rp_table_remove_locked(t, number);
}

static size_t pick_locked(rp_table *t, size_t from, size_t to, bool distinct) RP_REQUIRES(t->mu)
{
    return t->sampler->ops->pick(t->sampler, &t->rng, to - from, distinct, t->picked + from,
                                 t->picked_probability + from);
}

/* Draws `count` items, which may have been picked already. Removing an item would change the
 * probabilities of later draws, so with max_times_sampled the caller asks for one item at a
 * time, unless they are distinct.
 *
 * A software pipeline of three stages: while one part of the batch is picked, the slots of the
 * part before it and the trajectories of the part before that are being prefetched. */
static void draw_locked(rp_table *t, rp_op *op, size_t count, bool is_picked) RP_REQUIRES(t->mu)
{
    enum { PART = 64 };
    const uint32_t *picked = t->picked;

    assert(rp_mutex_is_held(&t->mu) && count <= t->picked_capacity && t->slots.live > 0);
    if (op->options->distinct && !is_picked) { /* distinct items cannot be picked in parts */
        count = pick_locked(t, 0, count, true);
        is_picked = true;
    }
    for (size_t from = 0; from < count + 2 * PART; from += PART) {
        size_t to = from + PART < count ? from + PART : count, i;

        if (from < count && !is_picked) (void)pick_locked(t, from, to, false);
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

size_t rp_sample_least(const rp_op *op)
{
    return op->options->at_least > 0 ? op->options->at_least : op->options->count;
}

/* Draws items and logs them. An atomic extension must not set priorities in the middle of one
 * log record, so the events of a distinct batch are added after all of it is drawn. */
static void draw_and_log_locked(rp_table *t, rp_op *op, size_t count, bool is_picked)
    RP_REQUIRES(t->mu)
{
    rp_log_record change = {.kind = RP_LOGGED_SAMPLE, .distinct = op->options->distinct};
    bool is_late = change.distinct && t->events.has_atomic && rp_table_log_of(t) != NULL;
    size_t first = op->done;

    t->events.muted = is_late;
    draw_locked(t, op, count, is_picked);
    t->events.muted = false;
    if (rp_table_log_of(t) == NULL) return;
    change.count = count;
    rp_log_locked(t, &change);
    for (size_t i = 0; is_late && i < op->done - first; i++) {
        const rp_slot *slot = rp_slots_at(&t->slots, t->picked[i]);

        rp_events_add_locked(t, RP_EVENT_SAMPLE, slot);
        if (slot->state != RP_SLOT_LIVE) rp_events_add_locked(t, RP_EVENT_DELETE, slot);
    }
}

static size_t cost_of_picked(const rp_table *t, size_t i) RP_REQUIRES(t->mu)
{
    return rp_slots_at(&t->slots, t->picked[i])->trajectory->cost;
}

/* The cost of the first `count` picked items. Prefetches their memory. */
static size_t cost_of_all_picked(const rp_table *t, size_t count) RP_REQUIRES(t->mu)
{
    enum { AHEAD = 16 };
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        if (i + 2 * AHEAD < count)
            __builtin_prefetch(rp_slots_at(&t->slots, t->picked[i + 2 * AHEAD]), 1);
        if (i + AHEAD < count)
            __builtin_prefetch(rp_slots_at(&t->slots, t->picked[i + AHEAD])->trajectory, 1);
        bytes += cost_of_picked(t, i);
    }
    return bytes;
}

/* Takes bytes of op->room for the picked items. Returns the number of items, from the first on,
 * for which there is room. If that is not all, sets lacked_bytes to the cost of the next. */
static size_t reserve_room_locked(rp_table *t, rp_op *op, size_t count) RP_REQUIRES(t->mu)
{
    size_t all = cost_of_all_picked(t, count), paid = 0;
    size_t got = op->room->take(op->room, cost_of_picked(t, 0), all), left = got;

    op->held_bytes += got;
    if (got == all) return count;
    while (paid < count && cost_of_picked(t, paid) <= left) left -= cost_of_picked(t, paid++);
    op->more_bytes += left;
    op->lacked_bytes = cost_of_picked(t, paid);
    return paid;
}

/* Returns bytes that were taken and not used. */
static void give_back(rp_op *op)
{
    assert(op->more_bytes <= op->held_bytes); /* D1 */
    if (op->more_bytes == 0) return;
    op->room->give(op->room, op->more_bytes);
    op->held_bytes -= op->more_bytes;
    op->more_bytes = 0;
}

/* How many of `count` (>= 1) items to pick: no more than there can be room for, as an item
 * costs at least RP_ITEM_FIXED_BYTES, but at least one, which tells how many bytes are lacking.
 */
static size_t limit_picks(const rp_op *op, size_t count)
{
    size_t most = op->room->left(op->room) / RP_ITEM_FIXED_BYTES;

    if (most == 0) return 1;
    return count < most ? count : most;
}

/* Picks at most `count` (>= 1) items and takes bytes of op->room for them. Returns the number
 * of items for which there is room. The picks of the others are undone, as a redo picks only
 * the items that were drawn. */
static size_t pick_and_reserve_locked(rp_table *t, rp_op *op, size_t count) RP_REQUIRES(t->mu)
{
    rp_rng before = t->rng;
    size_t paid;

    count = limit_picks(op, count);
    (void)pick_locked(t, 0, count, false);
    paid = reserve_room_locked(t, op, count);
    if (paid == count) return count;
    t->rng = before;
    if (paid > 0) (void)pick_locked(t, 0, paid, false); /* the same items again */
    return paid;
}

/* Does the same for distinct items. If there is no room for all of them, picks a smaller batch:
 * it may contain other items, which may cost more, so it tries again. */
static size_t pick_and_reserve_distinct_locked(rp_table *t, rp_op *op, size_t count)
    RP_REQUIRES(t->mu)
{
    count = limit_picks(op, count);
    for (size_t tries = 0; count > 0; tries++) {
        rp_rng before = t->rng;
        size_t picked = pick_locked(t, 0, count, true),
               paid = reserve_room_locked(t, op, picked);

        if (paid == picked) return picked;
        t->rng = before;
        if (t->sampler->ops->unpick != NULL)
            t->sampler->ops->unpick(t->sampler, before, count, t->picked,
                                    t->picked_probability);
        assert(op->done == 0); /* a distinct batch is drawn at once */
        op->more_bytes = op->held_bytes;
        give_back(op);
        count = tries > 0 && paid > count / 2 ? count / 2 : paid; /* bounds the tries */
    }
    return 0;
}

/* Picks one item and takes bytes of op->room for it, and in advance for up to `wanted` such
 * items. False, with nothing picked, if there is no room. */
static bool pick_and_reserve_one_locked(rp_table *t, rp_op *op, size_t wanted)
    RP_REQUIRES(t->mu)
{
    rp_rng before = t->rng;
    size_t cost, lack, most, got;

    (void)pick_locked(t, 0, 1, false);
    if (op->room == NULL) return true;
    cost = cost_of_picked(t, 0);
    if (cost > op->more_bytes) {
        lack = cost - op->more_bytes;
        if (!rp_size_mul(wanted, cost, &most) || most > ROOM_AHEAD) most = ROOM_AHEAD;
        got = op->room->take(op->room, lack, most > lack ? most : lack);
        op->held_bytes += got;
        op->more_bytes += got;
        if (got == 0) {
            op->lacked_bytes = cost;
            t->rng = before;
            return false;
        }
    }
    op->more_bytes -= cost;
    return true;
}

static rp_progress end_for_room(const rp_table *t, rp_op *op)
{
    if (op->done > 0) return rp_op_end(op, RP_OK);
    return rp_op_end(op, rp_fail(&op->error, RP_NO_RESOURCE,
                                 "table '%.60s': no room for a sample of %zu bytes",
                                 t->options.name, op->lacked_bytes));
}

/* Draws items and logs them; with a log and atomic extensions, in parts that fit the buffer of
 * events. */
static void draw_many_locked(rp_table *t, rp_op *op, size_t count) RP_REQUIRES(t->mu)
{
    enum { PART = 64 };
    bool in_parts = rp_table_log_of(t) != NULL && t->events.has_atomic;

    for (size_t part; count > 0 && op->lacked_bytes == 0; count -= part) {
        size_t drawn = part = in_parts && count > PART ? PART : count;

        if (op->room != NULL) drawn = pick_and_reserve_locked(t, op, part);
        if (drawn > 0) draw_and_log_locked(t, op, drawn, op->room != NULL);
        if (in_parts) rp_events_flush_locked(t);
    }
}

/* The largest size of a distinct batch. If drawing removes items, it is limited by the time for
 * which the lock may be held, since the batch is drawn under one acquisition. */
static size_t most_distinct_locked(const rp_table *t) RP_REQUIRES(t->mu)
{
    size_t each = rp_account_most_chunks(&t->account);

    if (t->options.max_times_sampled == 0 || each == 0) return SIZE_MAX;
    return each < RP_BLOCK_CHUNKS ? RP_BLOCK_CHUNKS / each : 1;
}

/* Draws a distinct batch at once, or blocks. */
static rp_progress sample_distinct_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu)
{
    size_t most = op->options->count, need = rp_sample_least(op), allowed;

    if (most > t->slots.live) most = t->slots.live; /* all items of a smaller table */
    if (most > most_distinct_locked(t)) most = most_distinct_locked(t);
    if (need > most) need = most;
    allowed = rp_rate_limiter_samples_allowed(&t->limiter, most);
    if (allowed == 0 || allowed < need) return RP_BLOCKED;
    if (op->room != NULL) allowed = pick_and_reserve_distinct_locked(t, op, allowed);
    if (allowed == 0) return end_for_room(t, op);
    draw_and_log_locked(t, op, allowed, op->room != NULL);
    return rp_op_end(op, RP_OK);
}

/* The number of items to draw under this acquisition of the lock. */
static size_t turn_size(const rp_op *op)
{
    size_t wanted = op->options->count - op->done;

    if (op->room == NULL || op->options->distinct || wanted < DRAWN_AT_ONCE) return wanted;
    return DRAWN_AT_ONCE;
}

static rp_progress run_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu)
{
    size_t wanted = turn_size(op);

    t->removed_chunks = 0;
    if (rp_op_is_held_up_locked(t, RP_SIDE_SAMPLES)) return RP_BLOCKED;
    if (!rp_rate_limiter_can_sample(&t->limiter, 1))
        return op->done >= rp_sample_least(op) ? rp_op_end(op, RP_OK) : RP_BLOCKED;
    if (reserve_draws_locked(t, wanted) != RP_OK)
        return op->done > 0 ? rp_op_end(op, RP_OK) : rp_op_end_out_of_memory(t, op);
    if (op->options->distinct) return sample_distinct_locked(t, op);
    if (t->options.max_times_sampled > 0)
        for (; wanted > 0 && rp_rate_limiter_can_sample(&t->limiter, 1); wanted--) {
            if (t->removed_chunks > RP_BLOCK_CHUNKS) return RP_YIELD;
            rp_log_make_room_locked(t);
            if (!pick_and_reserve_one_locked(t, op, wanted)) break;
            draw_locked(t, op, 1, true);
            rp_log_add_drawn_locked(t);
        }
    else
        draw_many_locked(t, op, rp_rate_limiter_samples_allowed(&t->limiter, wanted));
    if (op->lacked_bytes > 0) return end_for_room(t, op);
    if (op->done < op->options->count && rp_rate_limiter_can_sample(&t->limiter, 1))
        return RP_YIELD; /* other threads get a turn */
    return op->done >= rp_sample_least(op) ? rp_op_end(op, RP_OK) : RP_BLOCKED;
}

rp_progress rp_sample_run_locked(rp_table *t, rp_op *op)
{
    size_t done = op->done;
    rp_progress now = run_locked(t, op);

    if (rp_table_log_of(t) != NULL && op->done > done) {
        rp_log_flush_locked(t);
        op->lsn = t->log_buffer.lsn;
    }
    give_back(op);
    assert(op->more_bytes == 0 && op->done <= op->options->count); /* D2 */
    return now;
}

rp_status rp_sample_redo_locked(rp_table *t, const rp_log_record *change, rp_error *err)
{
    enum { PART = 64 }; /* distinct items are all picked at once */
    bool one_by_one = t->options.max_times_sampled > 0 && !change->distinct;
    size_t count = change->count, n;

    if (count == 0 || count > RP_MAX_BATCH || (change->distinct && count > t->slots.live))
        return rp_fail(err, RP_CORRUPT, "table '%.60s': a sample of %zu, with %zu items",
                       t->options.name, count, t->slots.live);
    if (reserve_draws_locked(t, change->distinct ? count : PART) != RP_OK)
        return rp_fail(err, RP_NO_RESOURCE, "table '%.60s': out of memory", t->options.name);
    for (; count > 0; count -= n) {
        n = change->distinct ? count : one_by_one ? 1 : count < PART ? count : PART;
        if (t->slots.live == 0)
            return rp_fail(err, RP_CORRUPT, "table '%.60s': a sample with no items left",
                           t->options.name);
        if (pick_locked(t, 0, n, change->distinct) != n)
            return rp_fail(err, RP_CORRUPT, "table '%.60s': a sample drew fewer than %zu",
                           t->options.name, n);
        for (size_t i = 0; i < n; i++) {
            rp_slot *slot = rp_slots_change(&t->slots, t->picked[i]);

            count_draw_locked(t, slot);
            if (is_used_up_locked(t, slot)) rp_table_remove_locked(t, t->picked[i]);
        }
    }
    return RP_OK;
}

/* size * probability, clamped to positive finite numbers so that no weight is NaN: a
 * probability may be rounded to 0, and a server may send any number. */
static double size_times_probability(const rp_sample *sample)
{
    return fmin(fmax((double)sample->table_size * sample->probability, DBL_MIN), DBL_MAX);
}

/* Importance weights (Schaul et al., 2016, section 3.4), divided by the largest of the batch,
 * which belongs to the smallest size * probability. Dividing before the power avoids
 * overflow. */
void rp_samples_weigh(rp_sample *samples, size_t count, double beta)
{
    double least = INFINITY;

    for (size_t i = 0; i < count; i++) least = fmin(least, size_times_probability(&samples[i]));
    for (size_t i = 0; i < count; i++)
        samples[i].weight = pow(size_times_probability(&samples[i]) / least, -beta);
}

void rp_sample_finish(rp_op *op)
{
    if (op->done > 0 && op->options->beta > 0)
        rp_samples_weigh(op->samples, op->done, op->options->beta);
}
