/* SPDX-License-Identifier: Apache-2.0 */
/* Releasing a table's lock after a change.
 *
 * Work that must not be done under the lock is collected under it and done here, after the lock
 * is released: trajectories are released, on_done functions are called, events are delivered to
 * deferred extensions, and tables that wait for bytes are retried. */
#include <assert.h>

#include "chunk/trajectory.h"
#include "table/table_log.h"
#include "util/mem.h"
#include "util/verify.h"

enum {
    KEPT_RETIRED = 4096, /* a `retired` array of up to this capacity is kept */
    RETRIED_AT_ONCE = 8, /* tables that wait for bytes */
};

/* The work that a thread has to do after it has released the lock. */
typedef struct deferred_work {
    rp_retired retired[RP_BLOCK];
    size_t retired_count;
    bool more_retired;
    bool is_empty;     /* the table is empty and should free its indexes */
    rp_retired *spent; /* a large `retired` array to be freed, or NULL */
    size_t spent_bytes;
    rp_op *finished;
    bool freed_bytes;
    bool has_deferred;
    bool pump_again;
} deferred_work;

/* True if the indexes of the table are unused and should be freed: other tables need the
 * memory, or the table was dropped. A reference to a dropped table does not keep its
 * indexes. */
static bool has_much_idle_locked(const rp_table *t) RP_REQUIRES(t->mu)
{
    if (t->slots.used == 0 || t->slots.live > 0 || t->slots.retired > 0 || t->being_cut)
        return false;
    return rp_table_is_dropped(t) ||
           (!t->keeps_numbers && rp_account_has_much_idle(&t->account));
}

/* Takes up to RP_BLOCK retired items: first those whose slots have been reclaimed. */
static void take_retired_locked(rp_table *t, deferred_work *out) RP_REQUIRES(t->mu)
{
    size_t n = t->retired_count < RP_BLOCK ? t->retired_count : RP_BLOCK;

    out->spent = NULL;
    if (n > 0) {
        t->retired_count -= n;
        memcpy(out->retired, t->retired + t->retired_count, n * sizeof *out->retired);
        if (t->retired_count == 0 && t->retired_capacity > KEPT_RETIRED) {
            out->spent = t->retired;
            out->spent_bytes = t->retired_capacity * sizeof *t->retired;
            t->retired = NULL;
            t->retired_capacity = 0;
        }
    }
    out->retired_count = n + rp_slots_reclaim(&t->slots, out->retired + n, RP_BLOCK - n);
    assert(out->retired_count <= RP_BLOCK);
    out->more_retired = t->retired_count > 0 || t->slots.retired > 0;
    out->is_empty = has_much_idle_locked(t);
}

static void take_locked(rp_table *t, deferred_work *out) RP_REQUIRES(t->mu)
{
    rp_table_count_out_locked(t, SIZE_MAX);
    rp_account_settle(&t->account, rp_table_spare_locked(t));
    rp_account_trim(&t->account);
    take_retired_locked(t, out);
    out->finished = NULL;
    if (t->finished != NULL && !t->calling_back) {
        out->finished = t->finished;
        t->finished = t->finished_last = NULL;
        t->calling_back = true;
    }
    out->freed_bytes = t->account.freed > 0;
    if (t->account.freed > 0)
        (void)atomic_fetch_add_explicit(&t->account.budget->freed, t->account.freed,
                                        memory_order_relaxed);
    t->account.freed = 0;
    out->has_deferred = t->events.deferred_count > 0;
    out->pump_again = t->pump_again;
    assert(t->events.atomic_count == 0);            /* E1 */
    assert(rp_log_buffer_is_empty(&t->log_buffer)); /* L1 */
    RP_VERIFY(t->slots.capacity, rp_table_check_locked(t));
}

/* Frees the indexes of a table if it is still empty. True if it did. */
static bool empty_indexes(rp_table *t) RP_EXCLUDES(t->mu)
{
    rp_log_record change = {.kind = RP_LOGGED_RENUMBER};
    rp_indexes spent;
    bool still;

    rp_mutex_lock(&t->mu);
    still = has_much_idle_locked(t);
    if (still) {
        rp_table_empty_indexes_locked(t, &spent);
        if (rp_table_log_of(t) != NULL && !rp_table_is_dropped(t)) rp_log_locked(t, &change);
        rp_account_settle(&t->account, rp_table_spare_locked(t));
    }
    rp_mutex_unlock(&t->mu);
    if (still) rp_indexes_free(&spent);
    return still;
}

static void release_retired(rp_table *t, deferred_work *taken) RP_EXCLUDES(t->mu)
{
    for (;;) {
        for (size_t i = 0; i < taken->retired_count; i++)
            rp_trajectory_unref_many(taken->retired[i].trajectory,
                                     taken->retired[i].references);
        if (taken->spent != NULL) rp_release(&t->alloc, taken->spent, taken->spent_bytes);
        if (!taken->more_retired) break;
        rp_mutex_lock(&t->mu);
        take_retired_locked(t, taken);
        rp_mutex_unlock(&t->mu);
    }
    if (taken->is_empty) taken->freed_bytes |= empty_indexes(t);
}

void rp_table_release_retired(rp_table *t)
{
    deferred_work taken = {.more_retired = true};

    release_retired(t, &taken);
}

/* Calls on_done of completed operations. One thread per table at a time: if an on_done function
 * causes other operations to complete, the loop here calls theirs, so that calls do not nest.
 */
static void call_back(rp_table *t, rp_op *finished) RP_EXCLUDES(t->mu)
{
    while (finished != NULL) {
        while (finished != NULL) {
            rp_op *op = finished;
            finished = op->next; /* before the call, which may free the operation */
            rp_op_finish(op);
            if (rp_op_load(op)) op->on_done(op);
        }
        rp_mutex_lock(&t->mu);
        finished = t->finished;
        t->finished = t->finished_last = NULL;
        t->calling_back = finished != NULL;
        rp_mutex_unlock(&t->mu);
    }
}

/* Releases the lock and does the collected work, except for retrying other tables. True if
 * bytes were returned to the budget. */
static bool settle(rp_table *t) RP_RELEASE(t->mu)
{
    deferred_work taken;

    assert(rp_mutex_is_held(&t->mu));
    rp_events_flush_locked(t);
    rp_table_pump_locked(t);
    rp_events_flush_locked(t);
    take_locked(t, &taken);
    rp_mutex_unlock(&t->mu);
    release_retired(t, &taken);
    call_back(t, taken.finished);
    while (taken.has_deferred || taken.pump_again) {
        bool freed = taken.freed_bytes;

        if (taken.has_deferred) rp_events_deliver(t);
        /* Deferred extensions have caught up, or other threads have had a turn: parked
         * operations that waited for that may proceed. */
        rp_mutex_lock(&t->mu);
        rp_table_pump_locked(t);
        rp_events_flush_locked(t);
        take_locked(t, &taken);
        if (t->events.delivering) taken.has_deferred = false; /* another thread delivers them */
        rp_mutex_unlock(&t->mu);
        taken.freed_bytes |= freed;
        release_retired(t, &taken);
        call_back(t, taken.finished);
    }
    return taken.freed_bytes;
}

/* The queue of tables that wait for bytes.
 *
 * A table is in the queue exactly while its waits_for_bytes is set. Then an operation is parked
 * in the table and keeps the table alive: a thread that finds the table in the queue may take a
 * reference to it. A table that is retried moves to the end of the queue (A7). */

#ifndef NDEBUG
/* Returns true if A7 holds. */
static bool is_in_order_locked(const rp_budget *b) RP_REQUIRES(b->mu)
{
    const rp_table *t = b->first_waiter;
    size_t count = 0;

    for (; t != NULL && t->retried_for != b->frees; t = t->next_waiter) count++;
    for (; t != NULL && t->retried_for == b->frees; t = t->next_waiter) count++;
    return t == NULL && count == atomic_load(&b->waiting);
}
#endif

static void append_locked(rp_budget *b, rp_table *t) RP_REQUIRES(b->mu)
{
    t->retried_for = b->frees;
    t->prev_waiter = b->last_waiter;
    t->next_waiter = NULL;
    *(b->last_waiter == NULL ? &b->first_waiter : &b->last_waiter->next_waiter) = t;
    b->last_waiter = t;
}

static void unlink_locked(rp_budget *b, rp_table *t) RP_REQUIRES(b->mu)
{
    assert(t->prev_waiter == NULL ? b->first_waiter == t : t->prev_waiter->next_waiter == t);
    assert(t->next_waiter == NULL ? b->last_waiter == t : t->next_waiter->prev_waiter == t);
    *(t->prev_waiter == NULL ? &b->first_waiter : &t->prev_waiter->next_waiter) =
        t->next_waiter;
    *(t->next_waiter == NULL ? &b->last_waiter : &t->next_waiter->prev_waiter) = t->prev_waiter;
}

void rp_table_wait_for_bytes_locked(rp_table *t)
{
    rp_budget *b = t->account.budget;

    if (t->waits_for_bytes) return;
    t->waits_for_bytes = true;
    rp_mutex_lock(&b->mu);
    append_locked(b, t); /* the caller tries again after this */
    (void)atomic_fetch_add(&b->waiting, 1);
    RP_VERIFY(atomic_load(&b->waiting), is_in_order_locked(b));
    rp_mutex_unlock(&b->mu);
}

void rp_table_stop_waiting_for_bytes_locked(rp_table *t)
{
    rp_budget *b = t->account.budget;

    if (!t->waits_for_bytes) return;
    t->waits_for_bytes = false;
    rp_mutex_lock(&b->mu);
    assert(atomic_load(&b->waiting) > 0);
    unlink_locked(b, t);
    (void)atomic_fetch_sub(&b->waiting, 1);
    rp_mutex_unlock(&b->mu);
}

/* From now on, all tables in the queue are to be retried. */
static void count_free(rp_budget *b)
{
    rp_mutex_lock(&b->mu);
    b->frees++;
    RP_VERIFY(atomic_load(&b->waiting), is_in_order_locked(b));
    rp_mutex_unlock(&b->mu);
}

/* Moves the next table to be retried to the end of the queue and returns it, owned; NULL if
 * there is none. */
static rp_table *next_to_retry(rp_budget *b)
{
    rp_table *t;

    rp_mutex_lock(&b->mu);
    t = b->first_waiter;
    if (t != NULL && t->retried_for == b->frees) t = NULL; /* A7 */
    if (t != NULL) {
        (void)rp_table_ref(t);
        unlink_locked(b, t);
        append_locked(b, t);
        RP_VERIFY(atomic_load(&b->waiting), is_in_order_locked(b));
    }
    rp_mutex_unlock(&b->mu);
    return t;
}

/* Retries some tables. False if there is none left to be retried. */
static bool retry_some(rp_budget *b)
{
    for (int i = 0; i < RETRIED_AT_ONCE; i++) {
        rp_table *t = next_to_retry(b);
        bool freed = false;

        if (t == NULL) return false;
        rp_mutex_lock(&t->mu);
        if (t->waits_for_bytes)
            freed = settle(t);
        else
            rp_mutex_unlock(&t->mu);
        rp_table_unref(t);
        if (freed) count_free(b);
    }
    return true;
}

/* Has somebody else retry the other tables, if that is possible. */
static bool hand_over(rp_budget *b)
{
    bool is_possible;

    rp_mutex_lock(&b->mu);
    is_possible = b->on_more != NULL;
    if (is_possible) b->on_more(b->on_more_user);
    rp_mutex_unlock(&b->mu);
    return is_possible;
}

/* Several threads may do this at once: each table is retried by one of them after the bytes
 * were freed. */
void rp_budget_retry(rp_budget *b)
{
    while (retry_some(b))
        if (hand_over(b)) return; /* A8 */
}

void rp_budget_wake_waiters(rp_budget *b)
{
    /* Sequentially consistent, like the increment of `waiting` above: either the waiting table
     * sees the bytes that were freed, or this thread sees the table. */
    if (atomic_load(&b->waiting) == 0) return;
    count_free(b);
    rp_budget_retry(b);
}

void rp_budget_retry_later(rp_budget *b, void (*on_more)(void *user), void *user)
{
    rp_mutex_lock(&b->mu);
    if (on_more != NULL || b->on_more_user == user) {
        b->on_more = on_more;
        b->on_more_user = on_more != NULL ? user : NULL;
    }
    rp_mutex_unlock(&b->mu);
    rp_budget_retry(b); /* tables for which an earlier function was called (A8) */
}

void rp_budget_set_lost(rp_budget *b, uint64_t bytes)
{
    uint64_t before = atomic_exchange(&b->lost, bytes);

    if (b->spill != NULL) { /* A4; modulo 2^64 */
        (void)atomic_fetch_add(&b->spill->resident, bytes - before);
        (void)atomic_fetch_add(&b->spill->small, bytes - before);
    }
    if (bytes < before) rp_budget_wake_waiters(b);
}

void rp_table_unlock(rp_table *t)
{
    rp_budget *b = t->account.budget;

    if (settle(t)) rp_budget_wake_waiters(b);
}
