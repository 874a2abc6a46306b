/* SPDX-License-Identifier: Apache-2.0 */
/* Calls about a whole table: trim, reset, close, drop, information, check. */
#include <assert.h>

#include "chunk/trajectory.h"
#include "table/table_log.h"
#include "util/clock.h"
#include "util/error.h"

static bool is_over_locked(const rp_table *t) RP_REQUIRES(t->mu)
{
    if (t->slots.live > (size_t)t->options.max_size) return true;
    return t->options.max_bytes > 0 && t->account.bytes > t->options.max_bytes;
}

/* The bytes of memory that evicting all items would release. */
static uint64_t memory_locked(const rp_table *t) RP_REQUIRES(t->mu)
{
    return t->account.budget->spill != NULL ? t->account.small_bytes : t->account.bytes;
}

uint64_t rp_table_memory(rp_table *t)
{
    uint64_t bytes;

    rp_mutex_lock(&t->mu);
    bytes = memory_locked(t);
    rp_mutex_unlock(&t->mu);
    return bytes;
}

size_t rp_table_evict_bytes(rp_table *t, uint64_t bytes)
{
    uint64_t before;
    size_t count = 0;

    rp_mutex_lock(&t->mu);
    before = memory_locked(t);
    t->removed_chunks = 0;
    if (!t->closed && rp_events_reserve_locked(t, RP_BLOCK) == RP_OK)
        for (; count < RP_BLOCK && t->slots.live > 0 && before - memory_locked(t) < bytes &&
               t->removed_chunks <= RP_BLOCK_CHUNKS;
             count++) {
            rp_log_make_room_locked(t);
            rp_table_evict_locked(t);
            rp_log_add_evicted_locked(t);
            rp_table_count_out_locked(t, SIZE_MAX);
        }
    rp_log_flush_locked(t);
    rp_table_unlock(t);
    return count;
}

rp_status rp_table_trim(rp_table *t, size_t *removed, rp_error *err)
{
    rp_status st = rp_table_wait_for_log(t, err);
    uint64_t lsn = 0;

    if (st == RP_OK) st = rp_table_trim_logged(t, removed, &lsn, err);
    return rp_table_wait_durable(t, st, lsn, rp_wait_forever(), err);
}

rp_status rp_table_trim_logged(rp_table *t, size_t *removed, uint64_t *lsn, rp_error *err)
{
    size_t in_all = 0;
    bool over = true;
    rp_status st = RP_OK;

    while (over && st == RP_OK) { /* in blocks, so that other threads get a turn */
        rp_mutex_lock(&t->mu);
        if (t->closed)
            st = rp_table_refuse_closed(t, err);
        else if (rp_events_reserve_locked(t, RP_BLOCK) != RP_OK)
            st = rp_fail_memory(err, RP_BLOCK * sizeof(rp_event));
        t->removed_chunks = 0;
        for (size_t i = 0; st == RP_OK && i < RP_BLOCK && is_over_locked(t) &&
                           t->removed_chunks <= RP_BLOCK_CHUNKS;
             i++) {
            rp_log_make_room_locked(t);
            rp_table_evict_locked(t);
            rp_log_add_evicted_locked(t);
            if (t->options.max_bytes > 0) rp_table_count_out_locked(t, SIZE_MAX);
            in_all++;
        }
        over = is_over_locked(t);
        rp_log_flush_locked(t);
        *lsn = t->log_buffer.lsn;
        rp_table_unlock(t);
    }
    if (removed != NULL) *removed = in_all;
    return st;
}

/* Retires all items. Their trajectories are released later, in blocks, without the lock. */
static void clear_locked(rp_table *t) RP_REQUIRES(t->mu)
{
    for (uint32_t i = 0; i < t->slots.used; i++) {
        rp_slot *slot = rp_slots_at(&t->slots, i);
        if (slot->state == RP_SLOT_LIVE) rp_slots_retire(&t->slots, i);
    }
    rp_table_count_out_locked(t, SIZE_MAX);
    rp_map_clear(&t->keys);
    t->sampler->ops->clear(t->sampler);
    t->remover->ops->clear(t->remover);
    assert(t->slots.live == 0 && t->account.bytes == 0);
}

/* Empties the table and resets all counters. */
static void restart_locked(rp_table *t) RP_REQUIRES(t->mu)
{
    clear_locked(t);
    rp_rate_limiter_reset(&t->limiter);
    rp_account_reset(&t->account);
    t->unique_samples = t->updates = t->evictions = 0;
    t->max = t->one;
}

rp_status rp_table_reset(rp_table *t, rp_error *err)
{
    rp_status st = rp_table_wait_for_log(t, err);
    uint64_t lsn = 0;

    if (st == RP_OK) st = rp_table_reset_logged(t, &lsn, err);
    return rp_table_wait_durable(t, st, lsn, rp_wait_forever(), err);
}

void rp_reset_redo_locked(rp_table *t)
{
    restart_locked(t);
}

rp_status rp_table_reset_logged(rp_table *t, uint64_t *lsn, rp_error *err)
{
    rp_log_record change = {.kind = RP_LOGGED_RESET};
    rp_status st = RP_OK;

    rp_mutex_lock(&t->mu);
    if (t->closed) {
        st = rp_table_refuse_closed(t, err);
    } else if (rp_events_reserve_locked(t, 1) != RP_OK) {
        st = rp_fail_memory(err, sizeof(rp_event));
    } else {
        restart_locked(t);
        if (rp_table_log_of(t) != NULL) rp_log_locked(t, &change);
        rp_events_add_locked(t, RP_EVENT_RESET, NULL);
    }
    *lsn = t->log_buffer.lsn;
    rp_table_unlock(t);
    return st;
}

void rp_table_close(rp_table *t)
{
    rp_mutex_lock(&t->mu);
    t->closed = true;
    rp_table_end_parked_locked(t, "was closed");
    rp_table_unlock(t);
}

void rp_table_drop(rp_table *t)
{
    rp_mutex_lock(&t->mu);
    t->closed = true;
    atomic_store_explicit(&t->dropped, true, memory_order_release);
    rp_table_end_parked_locked(t, "was dropped");
    restart_locked(t);
    t->account.freed += t->account.idle; /* other tables may wait for these bytes */
    rp_table_unlock(t);
}

const char *rp_table_name(const rp_table *t)
{
    return t->options.name;
}

static rp_waits waits_of(const rp_queue *q, int64_t now_ns)
{
    return (rp_waits){
        .longest_ns = q->first != NULL ? now_ns - q->first->started_ns : 0,
        .parked = q->parked,
        .total_ns = (int64_t)(q->waited_ns + q->count * (uint64_t)now_ns - q->started_ns),
    };
}

static double total_weight(rp_table *t)
{
    rp_selector *sampler = t->sampler;

    return sampler->ops->total != NULL ? sampler->ops->total(sampler) : (double)t->slots.live;
}

void rp_table_get_info(rp_table *t, rp_table_info *out)
{
    const rp_table_options *o = &t->options;
    int64_t now_ns;

    rp_mutex_lock(&t->mu);
    now_ns = rp_now_ns(); /* under the lock, so that no operation was parked later */
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
    out->closed = t->closed;
    out->paused = t->paused;
    out->size = (int64_t)t->slots.live;
    out->total_weight = total_weight(t);
    out->bytes = t->account.bytes;
    out->inserts = t->limiter.inserts;
    out->samples = t->limiter.samples;
    out->deletes = t->limiter.deletes;
    out->updates = t->updates;
    out->evictions = t->evictions;
    out->episodes = (int64_t)rp_count_map_size(&t->account.episodes);
    out->deleted_episodes = t->account.deleted_episodes;
    out->unique_samples = t->unique_samples;
    out->max_priority = t->max.priority;
    out->limiter_diff = rp_rate_limiter_diff(&t->limiter);
    out->waiting_inserts = (int64_t)t->inserts.count;
    out->waiting_samples = (int64_t)t->samples.count;
    out->insert_waits = waits_of(&t->inserts, now_ns);
    out->sample_waits = waits_of(&t->samples, now_ns);
    rp_mutex_unlock(&t->mu);
}

bool rp_table_can_insert(rp_table *t, int64_t count)
{
    bool can;

    rp_mutex_lock(&t->mu);
    can = count >= 1 && (t->paused & RP_SIDE_INSERTS) == 0 &&
          rp_rate_limiter_can_insert(&t->limiter, count);
    rp_mutex_unlock(&t->mu);
    return can;
}

bool rp_table_can_sample(rp_table *t, int64_t count)
{
    bool can;

    rp_mutex_lock(&t->mu);
    can = count >= 1 && (t->paused & RP_SIDE_SAMPLES) == 0 &&
          rp_rate_limiter_can_sample(&t->limiter, count);
    rp_mutex_unlock(&t->mu);
    return can;
}

/* T7. */
static bool check_queue(const rp_queue *q, bool is_insert)
{
    const rp_op *prev = NULL;
    size_t count = 0, behind = 0;

    for (const rp_op *op = q->first; op != NULL; prev = op, op = op->next) {
        if (op->prev != prev || op->ahead != NULL || !op->parked ||
            op->is_insert != is_insert || ++count > q->count)
            return false;
        if (prev != NULL && prev->number >= op->number) return false; /* O2 */
        for (const rp_op *a = op, *b = op->behind; b != NULL; a = b, b = b->behind)
            if (b->ahead != a || !b->parked || b->is_insert != is_insert ||
                ++behind > q->behind)
                return false;
    }
    return q->last == prev && behind == q->behind && count + behind == q->count;
}

bool rp_table_check_locked(rp_table *t)
{
    size_t live = 0;

    for (uint32_t i = 0; i < t->slots.used; i++) {
        const rp_slot *slot = rp_slots_at(&t->slots, i);
        if (slot->state != RP_SLOT_LIVE) continue;
        live++;
        if (slot->trajectory == NULL || slot->references == 0 ||
            slot->tag != rp_map_tag(&t->keys, slot->key))
            return false;
        if (slot->sequence >= t->slots.next_sequence || slot->turn >= t->next_turn)
            return false;
        if (rp_table_find_locked(t, slot->key, slot->tag) != i) return false; /* T1 */
        if (rp_account_cost(&t->account, slot->trajectory) != slot->trajectory->item_cost)
            return false; /* T4 */
    }
    if (live != t->slots.live || live != t->keys.count) return false;
    if (!rp_slots_check(&t->slots)) return false; /* S, C */
    if (!check_queue(&t->inserts, true) || !check_queue(&t->samples, false)) return false;
    if (!t->options.soft_limit && live > (size_t)t->options.max_size) return false; /* T2 */
    if (t->limiter.inserts - t->limiter.deletes != (int64_t)live) return false;     /* T5 */
    return t->sampler->ops->check(t->sampler, live) && t->remover->ops->check(t->remover, live);
}

bool rp_table_check(rp_table *t)
{
    bool ok;

    rp_mutex_lock(&t->mu);
    ok = rp_table_check_locked(t);
    rp_mutex_unlock(&t->mu);
    return ok;
}
