/* SPDX-License-Identifier: Apache-2.0 */
/* Leaving a table's lock after a change.
 *
 * What must not happen under the lock is collected there and done here, once it is left (L2):
 * trajectories are let go, owners of operations called back, deferred extensions told, and
 * tables that wait for bytes given another try. */
#include "chunk/trajectory.h"
#include "table/table_log.h"
#include "util/mem.h"

enum { KEPT_GRAVE = 4096 /* room in a grave that is kept for the next time */ };

/* What a thread takes with it when it leaves the lock. */
typedef struct takeaway {
    rp_remains dead[RP_BLOCK];
    size_t dead_count;
    bool more_dead;
    bool is_empty;     /* the table, and the memory of its indexes is to be given back */
    rp_remains *spent; /* a large grave that is empty now */
    size_t spent_bytes;
    rp_op *finished;
    bool freed_bytes;
    bool has_deferred;
    bool pump_again;
} takeaway;

/* Indexes without items whose memory others want, or of a table that was dropped: whoever still
 * has a reference to it keeps none of them. */
static bool has_much_idle_locked(const rp_table *t) RP_REQUIRES(t->mu)
{
    if (t->slots.used == 0 || t->slots.live > 0 || t->slots.dead > 0 || t->being_cut)
        return false;
    return rp_table_is_dropped(t) ||
           (!t->keeps_numbers && rp_account_has_much_idle(&t->account));
}

/* Takes up to RP_BLOCK of the dead, first those that have been exhumed already. */
static void take_dead_locked(rp_table *t, takeaway *out) RP_REQUIRES(t->mu)
{
    size_t n = t->grave_count < RP_BLOCK ? t->grave_count : RP_BLOCK;

    out->spent = NULL;
    if (n > 0) {
        t->grave_count -= n;
        memcpy(out->dead, t->grave + t->grave_count, n * sizeof *out->dead);
        if (t->grave_count == 0 && t->grave_capacity > KEPT_GRAVE) {
            out->spent = t->grave;
            out->spent_bytes = t->grave_capacity * sizeof *t->grave;
            t->grave = NULL;
            t->grave_capacity = 0;
        }
    }
    out->dead_count = n + rp_slots_exhume(&t->slots, out->dead + n, RP_BLOCK - n);
    out->more_dead = t->grave_count > 0 || t->slots.dead > 0;
    out->is_empty = has_much_idle_locked(t);
}

static void take_locked(rp_table *t, takeaway *out) RP_REQUIRES(t->mu)
{
    rp_table_count_out_locked(t, SIZE_MAX);
    rp_account_settle(&t->account, rp_table_spare_locked(t));
    rp_account_trim(&t->account);
    take_dead_locked(t, out);
    out->finished = NULL;
    if (t->finished != NULL && !t->calling_back) {
        out->finished = t->finished;
        t->finished = t->finished_last = NULL;
        t->calling_back = true;
    }
    out->freed_bytes = t->account.freed > 0;
    t->account.freed = 0;
    out->has_deferred = t->events.deferred_count > 0;
    out->pump_again = t->pump_again;
}

/* Gives back the indexes of a table that is still empty. True if it did. */
static bool empty_indexes(rp_table *t) RP_EXCLUDES(t->mu)
{
    rp_change change = {.kind = RP_CHANGED_RENUMBER};
    rp_indexes spent;
    bool still;

    rp_mutex_lock(&t->mu);
    still = has_much_idle_locked(t);
    if (still) {
        rp_table_empty_indexes_locked(t, &spent);
        if (rp_table_log_of(t) != NULL && !rp_table_is_dropped(t)) rp_tell_locked(t, &change);
        rp_account_settle(&t->account, rp_table_spare_locked(t));
    }
    rp_mutex_unlock(&t->mu);
    if (still) rp_indexes_free(&spent);
    return still;
}

static void let_go(rp_table *t, takeaway *taken) RP_EXCLUDES(t->mu)
{
    for (;;) {
        for (size_t i = 0; i < taken->dead_count; i++)
            rp_trajectory_unref_many(taken->dead[i].trajectory, taken->dead[i].references);
        if (taken->spent != NULL) rp_release(&t->alloc, taken->spent, taken->spent_bytes);
        if (!taken->more_dead) break;
        rp_mutex_lock(&t->mu);
        take_dead_locked(t, taken);
        rp_mutex_unlock(&t->mu);
    }
    if (taken->is_empty) taken->freed_bytes |= empty_indexes(t);
}

void rp_table_let_go(rp_table *t)
{
    takeaway taken = {.more_dead = true};

    let_go(t, &taken);
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
            if (rp_op_bring_in(op)) op->on_done(op);
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
    while (taken.has_deferred || taken.pump_again) {
        bool freed = taken.freed_bytes;

        if (taken.has_deferred) rp_events_deliver(t);
        /* Deferred extensions have caught up, or others have had a turn: parked operations that
         * waited for that may go on. */
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

/* The line of tables that wait for bytes.
 *
 * A table stands in it exactly while waits_for_bytes, so somebody waits in it and it is alive:
 * whoever finds it there may take a reference. */

static void append_locked(rp_budget *b, rp_table *t) RP_REQUIRES(b->mu)
{
    t->prev_waiter = b->last_waiter;
    t->next_waiter = NULL;
    *(b->last_waiter == NULL ? &b->first_waiter : &b->last_waiter->next_waiter) = t;
    b->last_waiter = t;
}

static void unlink_locked(rp_budget *b, rp_table *t) RP_REQUIRES(b->mu)
{
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
    append_locked(b, t);
    (void)atomic_fetch_add(&b->waiting, 1);
    rp_mutex_unlock(&b->mu);
}

void rp_table_stop_waiting_for_bytes_locked(rp_table *t)
{
    rp_budget *b = t->account.budget;

    if (!t->waits_for_bytes) return;
    t->waits_for_bytes = false;
    rp_mutex_lock(&b->mu);
    unlink_locked(b, t);
    (void)atomic_fetch_sub(&b->waiting, 1);
    rp_mutex_unlock(&b->mu);
}

/* The first of the line, which goes to its end; NULL if there is none. Returns owned. */
static rp_table *next_in_line(rp_budget *b)
{
    rp_table *t;

    rp_mutex_lock(&b->mu);
    t = b->first_waiter;
    if (t != NULL) {
        (void)rp_table_ref(t);
        unlink_locked(b, t);
        append_locked(b, t);
    }
    rp_mutex_unlock(&b->mu);
    return t;
}

/* Gives tables that wait for bytes another try, until none of them frees any more.
 *
 * Other threads may do the same at once: then each table's turn comes from one of them, and
 * after the bytes were freed, since the line turns under the lock. */
void rp_budget_wake_waiters(rp_budget *b)
{
    bool freed = true;

    /* Sequentially consistent, like the count's increment above: either the waiter sees the
     * bytes that were freed, or we see the waiter. */
    while (freed && atomic_load(&b->waiting) > 0) {
        freed = false;
        for (uint_fast32_t left = atomic_load(&b->waiting); left > 0; left--) {
            rp_table *t = next_in_line(b);

            if (t == NULL) break;
            rp_mutex_lock(&t->mu);
            if (t->waits_for_bytes)
                freed |= settle(t);
            else
                rp_mutex_unlock(&t->mu);
            rp_table_unref(t);
        }
    }
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

void rp_table_leave(rp_table *t)
{
    rp_budget *b = t->account.budget;

    if (settle(t)) rp_budget_wake_waiters(b);
}
