/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing samples: as many as the limiter allows, in one go if nothing is removed on the way.
 */
#include <float.h>
#include <math.h>

#include "chunk/trajectory.h"
#include "table/operation/operation.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    SPARE_REFERENCES = 1 << 12, /* that a slot takes at a time, to hand out */
    ROOM_AHEAD = 1 << 20,       /* bytes that are taken at once for draws one by one */
    DRAWN_AT_ONCE = 1 << 12,    /* items in one turn of an operation that takes room */
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

/* True if an item that has just been sampled has to go. */
static bool is_used_up_locked(const rp_table *t, const rp_slot *slot) RP_REQUIRES(t->mu)
{
    int32_t most = t->options.max_times_sampled;

    if (most == 0 || slot->times_sampled < most) return false;
    return slot->times_sampled == most || t->times_altered;
}

/* Counts a draw of the item in a slot, which may be the last. */
static void count_draw_locked(rp_table *t, rp_slot *slot) RP_REQUIRES(t->mu)
{
    t->unique_samples += slot->times_sampled == 0;
    if (slot->times_sampled < INT32_MAX) slot->times_sampled++; /* it may have been given */
    t->limiter.samples++;
}

/* Hands out the item in a slot. */
static void hand_out_locked(rp_table *t, rp_op *op, uint32_t number, double probability)
    RP_REQUIRES(t->mu)
{
    rp_slot *slot = rp_slots_change(&t->slots, number);

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

/* Draws `count` items of one moment, which may have been picked already. Removing on the way
 * would change what the later draws mean, so with max_times_sampled the caller asks for one,
 * unless they are distinct.
 *
 * An assembly line of three stations, a part of the batch in each: while one part is drawn, the
 * slots of the one before and the trajectories of the one before that are on their way here. */
static void draw_locked(rp_table *t, rp_op *op, size_t count, bool is_picked) RP_REQUIRES(t->mu)
{
    enum { PART = 64 };
    const uint32_t *picked = t->picked;

    if (op->options->distinct && !is_picked) { /* these cannot be picked in parts */
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

/* Draws and tells the log. An atomic extension may not set priorities half-way through what is
 * told as one change: so it hears of a distinct batch when all of it is drawn. */
static void draw_and_tell_locked(rp_table *t, rp_op *op, size_t count, bool is_picked)
    RP_REQUIRES(t->mu)
{
    rp_change change = {.kind = RP_CHANGED_SAMPLE, .distinct = op->options->distinct};
    bool is_late = change.distinct && t->events.has_atomic && rp_table_log_of(t) != NULL;
    size_t first = op->done;

    t->events.muted = is_late;
    draw_locked(t, op, count, is_picked);
    t->events.muted = false;
    if (rp_table_log_of(t) == NULL) return;
    change.count = count;
    rp_tell_locked(t, &change);
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

/* What the first `count` items that were picked cost. Fetches them ahead. */
static size_t weigh_picked(const rp_table *t, size_t count) RP_REQUIRES(t->mu)
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

/* Takes room for what was picked. Returns for how many of them, from the first on. If that is
 * not all, lacked_bytes is what the next one costs. */
static size_t pay_locked(rp_table *t, rp_op *op, size_t count) RP_REQUIRES(t->mu)
{
    size_t all = weigh_picked(t, count), paid = 0;
    size_t got = op->room->take(op->room, cost_of_picked(t, 0), all), left = got;

    op->held_bytes += got;
    if (got == all) return count;
    while (paid < count && cost_of_picked(t, paid) <= left) left -= cost_of_picked(t, paid++);
    op->more_bytes += left;
    op->lacked_bytes = cost_of_picked(t, paid);
    return paid;
}

/* Gives back what was taken and has not been used. */
static void give_back(rp_op *op)
{
    if (op->more_bytes == 0) return;
    op->room->give(op->room, op->more_bytes);
    op->held_bytes -= op->more_bytes;
    op->more_bytes = 0;
}

/* How many of `count` (>= 1) items to pick: no more than there might be room for, as an item
 * costs RP_ITEM_FIXED_BYTES at least, but one, which tells how many bytes are lacking. */
static size_t limit_picks(const rp_op *op, size_t count)
{
    size_t most = op->room->left(op->room) / RP_ITEM_FIXED_BYTES;

    if (most == 0) return 1;
    return count < most ? count : most;
}

/* Picks at most `count` (>= 1) items and takes room for them. Returns how many
 * are paid for. The others are as if they had never been picked: a replay picks only what was
 * drawn. */
static size_t pick_and_pay_locked(rp_table *t, rp_op *op, size_t count) RP_REQUIRES(t->mu)
{
    rp_rng before = t->rng;
    size_t paid;

    count = limit_picks(op, count);
    (void)pick_locked(t, 0, count, false);
    paid = pay_locked(t, op, count);
    if (paid == count) return count;
    t->rng = before;
    if (paid > 0) (void)pick_locked(t, 0, paid, false); /* the same again */
    return paid;
}

/* The same for distinct items. Fewer of them may be others: then these have to be paid for. */
static size_t pick_and_pay_distinct_locked(rp_table *t, rp_op *op, size_t count)
    RP_REQUIRES(t->mu)
{
    count = limit_picks(op, count);
    for (size_t tries = 0; count > 0; tries++) {
        rp_rng before = t->rng;
        size_t picked = pick_locked(t, 0, count, true), paid = pay_locked(t, op, picked);

        if (paid == picked) return picked;
        t->rng = before;
        if (t->sampler->ops->unpick != NULL)
            t->sampler->ops->unpick(t->sampler, before, count, t->picked,
                                    t->picked_probability);
        op->more_bytes = op->held_bytes; /* a distinct batch has nothing from before */
        give_back(op);
        count = tries > 0 && paid > count / 2 ? count / 2 : paid; /* few tries */
    }
    return 0;
}

/* Picks one item and takes room for it; as large a step ahead as `wanted` of them would need.
 * False, with nothing picked, if there is none. */
static bool pick_and_pay_one_locked(rp_table *t, rp_op *op, size_t wanted) RP_REQUIRES(t->mu)
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

/* Draws and tells the log, in parts small enough for the buffer of events, if that matters. */
static void draw_many_locked(rp_table *t, rp_op *op, size_t count) RP_REQUIRES(t->mu)
{
    enum { PART = 64 };
    bool in_parts = rp_table_log_of(t) != NULL && t->events.has_atomic;

    for (size_t part; count > 0 && op->lacked_bytes == 0; count -= part) {
        size_t drawn = part = in_parts && count > PART ? PART : count;

        if (op->room != NULL) drawn = pick_and_pay_locked(t, op, part);
        if (drawn > 0) draw_and_tell_locked(t, op, drawn, op->room != NULL);
        if (in_parts) rp_events_flush_locked(t);
    }
}

/* How many items one distinct batch may have. Where items leave the table with it, no more than
 * the lock can be held for, since it cannot be drawn in turns. */
static size_t most_distinct_locked(const rp_table *t) RP_REQUIRES(t->mu)
{
    size_t each = rp_account_most_chunks(&t->account);

    if (t->options.max_times_sampled == 0 || each == 0) return SIZE_MAX;
    return each < RP_BLOCK_CHUNKS ? RP_BLOCK_CHUNKS / each : 1;
}

/* A distinct batch is drawn at one moment or not at all. */
static rp_progress sample_distinct_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu)
{
    size_t most = op->options->count, need = rp_sample_least(op), allowed;

    if (most > t->slots.live) most = t->slots.live; /* the table gives what it has */
    if (most > most_distinct_locked(t)) most = most_distinct_locked(t);
    if (need > most) need = most;
    allowed = rp_rate_limiter_samples_allowed(&t->limiter, most);
    if (allowed == 0 || allowed < need) return RP_BLOCKED;
    if (op->room != NULL) allowed = pick_and_pay_distinct_locked(t, op, allowed);
    if (allowed == 0) return end_for_room(t, op);
    draw_and_tell_locked(t, op, allowed, op->room != NULL);
    return rp_op_end(op, RP_OK);
}

/* How many of those that are wanted to draw in this turn. */
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
            rp_tell_room_locked(t);
            if (!pick_and_pay_one_locked(t, op, wanted)) break;
            draw_locked(t, op, 1, true);
            rp_note_drawn_locked(t);
        }
    else
        draw_many_locked(t, op, rp_rate_limiter_samples_allowed(&t->limiter, wanted));
    if (op->lacked_bytes > 0) return end_for_room(t, op);
    if (op->done < op->options->count && rp_rate_limiter_can_sample(&t->limiter, 1))
        return RP_YIELD; /* for the sake of others */
    return op->done >= rp_sample_least(op) ? rp_op_end(op, RP_OK) : RP_BLOCKED;
}

rp_progress rp_sample_run_locked(rp_table *t, rp_op *op)
{
    size_t done = op->done;
    rp_progress now = run_locked(t, op);

    if (rp_table_log_of(t) != NULL && op->done > done) {
        rp_tell_noted_locked(t);
        op->lsn = t->telling.lsn;
    }
    give_back(op);
    return now;
}

rp_status rp_sample_replay_locked(rp_table *t, const rp_change *change, rp_error *err)
{
    enum { PART = 64 }; /* of draws that are distinct, all are picked at once */
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

/* size * probability. A probability may be 0, rounded, and that of a server may be anything:
 * the result is positive and finite, and a weight worked out of it is never NaN. */
static double size_times_probability(const rp_sample *sample)
{
    return fmin(fmax((double)sample->table_size * sample->probability, DBL_MIN), DBL_MAX);
}

/* Importance weights (Schaul et al., 2016, section 3.4), scaled by the largest of the batch:
 * that of the least size * probability, by which the others are divided first, since the power
 * may overflow. */
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
