/* SPDX-License-Identifier: Apache-2.0 */
/* Inserts and samples: run at once, or parked until they can proceed.
 *
 *            start                      withdraw, expire, close
 *   (owner) ------> run ---> over  <------------------------+
 *                    |                                      |
 *                    +----> parked --- pump: run again -----+---> over, on_done
 *
 * Parked operations are in two queues, inserts and samples, in order of arrival. A thread that
 * has changed the table pumps: it runs the first insert as far as possible, then the first
 * sample, until neither makes progress. Completed operations are collected, and their on_done
 * is called without the lock (rp_table_unlock()).
 *
 * No caller keeps the first place for long. A sample that has drawn RP_BLOCK items in its turn
 * and wants more goes to the end of its queue. An insert whose caller has an insert in the
 * queue already waits behind that one (`after`), and goes to the end of the queue when it is
 * over.
 *
 * An operation runs in steps that each leave the table consistent, so it may stop between any
 * two items and continue later; op->done counts the items processed.
 *
 * Invariants:
 *   O1  op->parked is true exactly while the operation is in a queue, or behind one that is;
 *   O2  numbers ascend along a queue;
 *   O3  an operation is behind another exactly while op->ahead is set. */
#include "table/operation/operation.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "util/clock.h"
#include "util/error.h"

enum {
    PUMPED_AT_ONCE = 4096 /* items of parked operations per acquisition of the lock */
};

rp_progress rp_op_end_out_of_memory(const rp_table *t, rp_op *op)
{
    return rp_op_end(
        op, rp_fail(&op->error, RP_NO_RESOURCE, "table '%s': out of memory", t->options.name));
}

void rp_op_finish(rp_op *op)
{
    if (op->is_insert)
        rp_insert_finish(op);
    else
        rp_sample_finish(op);
}

static rp_queue *queue_of(rp_table *t, const rp_op *op)
{
    return op->is_insert ? &t->inserts : &t->samples;
}

static void report_progress(rp_op *op)
{
    if (op->is_insert && op->on_progress != NULL) op->on_progress(op);
}

/* Puts an operation at the end of its queue. */
static void append_locked(rp_queue *q, rp_op *op)
{
    op->prev = q->last;
    op->next = NULL;
    *(q->last == NULL ? &q->first : &q->last->next) = op;
    q->last = op;
    op->number = q->numbers++;
    op->turn_at = op->done;
}

static void unlink_locked(rp_queue *q, rp_op *op)
{
    assert(op->prev == NULL ? q->first == op : op->prev->next == op);
    assert(op->next == NULL ? q->last == op : op->next->prev == op);
    *(op->prev == NULL ? &q->first : &op->prev->next) = op->next;
    *(op->next == NULL ? &q->last : &op->next->prev) = op->prev;
    op->prev = op->next = NULL;
}

/* Puts an operation behind op->after, if that one is parked. */
static bool stand_behind_locked(rp_queue *q, rp_op *op)
{
    rp_op *ahead = op->after;

    if (ahead == NULL || !ahead->parked) return false;
    assert(op->is_insert && ahead->is_insert && ahead->table == op->table);
    assert(ahead->behind == NULL && op->until_ns == RP_FOREVER);
    ahead->behind = op;
    op->ahead = ahead;
    q->behind++;
    return true;
}

/* Removes an operation that waits behind another. */
static void leave_chain_locked(rp_queue *q, rp_op *op)
{
    op->ahead->behind = op->behind;
    if (op->behind != NULL) op->behind->ahead = op->ahead;
    op->ahead = op->behind = NULL;
    q->behind--;
}

/* Removes an operation from the queue. The one behind it goes to the end of the queue. */
static void leave_queue_locked(rp_queue *q, rp_op *op)
{
    rp_op *behind = op->behind;

    unlink_locked(q, op);
    if (behind == NULL) return;
    behind->ahead = op->behind = NULL;
    q->behind--;
    append_locked(q, behind);
}

/* Sends a sample that has had its turn to the end of the queue. */
static void end_turn_locked(rp_queue *q, rp_op *op)
{
    if (op->is_insert || op->done - op->turn_at < RP_BLOCK || q->last == op) return;
    unlink_locked(q, op);
    append_locked(q, op);
}

static void park_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu)
{
    rp_queue *q = queue_of(t, op);

    assert(rp_mutex_is_held(&t->mu) && !op->parked && !t->closed); /* O1 */
    assert((q->first == NULL) == (q->count == 0));
    op->parked = op->was_parked = true;
    op->parked_at = op->done;
    op->started_ns = rp_now_ns();
    if (!stand_behind_locked(q, op)) append_locked(q, op);
    q->count++;
    q->parked++;
    q->started_ns += (uint64_t)op->started_ns;
    report_progress(op);
}

static void unpark_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu)
{
    rp_queue *q = queue_of(t, op);

    assert(rp_mutex_is_held(&t->mu) && op->parked && q->count > 0); /* O1 */
    if (op->ahead != NULL)                                          /* O3 */
        leave_chain_locked(q, op);
    else
        leave_queue_locked(q, op);
    q->count--;
    q->started_ns -= (uint64_t)op->started_ns;
    q->waited_ns += (uint64_t)(rp_now_ns() - op->started_ns);
    op->parked = false;
    if (op->is_insert && q->count == 0) rp_table_stop_waiting_for_bytes_locked(t);
}

/* Unparks a completed operation and appends it to `finished`, for its on_done. */
static void finish_parked_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu)
{
    unpark_locked(t, op);
    *(t->finished == NULL ? &t->finished : &t->finished_last->next) = op;
    t->finished_last = op;
}

/* Runs the operations of a queue in order, as far as they complete, for about `*left` items.
 * True if anything changed. */
static bool pump_queue_locked(rp_table *t, rp_queue *q, size_t *left) RP_REQUIRES(t->mu)
{
    bool moved = false;

    while (q->first != NULL && *left > 0) {
        rp_op *op = q->first;
        size_t done = op->done;
        rp_progress now =
            op->is_insert ? rp_insert_resume_locked(t, op) : rp_sample_run_locked(t, op);

        moved |= op->done != done || now == RP_OVER;
        done = op->done > done ? op->done - done : now == RP_OVER;
        *left -= done < *left ? done : *left;
        if (now == RP_YIELD) *left = 0;
        rp_events_flush_locked(t); /* before the next operation sees the changes */
        if (now != RP_OVER && done > 0) {
            report_progress(op);
            if (op->is_insert && op->done == op->count) now = rp_op_end(op, RP_OK);
        }
        if (now != RP_OVER) {
            end_turn_locked(q, op); /* as it has moved, the caller runs the next one */
            break;
        }
        finish_parked_locked(t, op);
    }
    return moved;
}

void rp_table_pump_locked(rp_table *t)
{
    bool moved = t->inserts.count > 0 || t->samples.count > 0;
    size_t left = PUMPED_AT_ONCE;

    if (t->closed) moved = false; /* rp_table_end_parked_locked() completes them */
    while (moved && left > 0) {
        moved = pump_queue_locked(t, &t->inserts, &left);
        moved |= pump_queue_locked(t, &t->samples, &left);
    }
    t->pump_again = left == 0;
}

static const char *paused_text(bool inserts)
{
    return inserts ? "inserts are paused by an administrator: resume the table"
                   : "samples are paused by an administrator: resume the table";
}

/* Appends that the operations which would release this one are paused, if they are. */
static void append_paused_locked(const rp_table *t, bool by_inserts, char *text, size_t size)
    RP_REQUIRES(t->mu)
{
    size_t used = strlen(text);

    if ((t->paused & (by_inserts ? RP_SIDE_INSERTS : RP_SIDE_SAMPLES)) == 0) return;
    (void)snprintf(text + used, size - used, "; %s", paused_text(by_inserts));
}

/* Why a sample waits for inserts. Returns `text`. */
static char *why_no_sample_locked(const rp_table *t, const rp_op *op, char *text, size_t size)
    RP_REQUIRES(t->mu)
{
    if (!rp_rate_limiter_can_sample(&t->limiter, 1))
        return rp_rate_limiter_why_no_sample(&t->limiter, text, size);
    (void)snprintf(text, size,
                   "sample waits to draw %zu distinct items at once, and the limiter allows "
                   "%zu; ask for at_least fewer, or insert more",
                   rp_sample_least(op),
                   rp_rate_limiter_samples_allowed(&t->limiter, op->options->count));
    return text;
}

/* The reason why the operation could not proceed if it were first in its queue. */
static char *why_blocked_locked(rp_table *t, const rp_op *op, char *text, size_t size)
    RP_REQUIRES(t->mu)
{
    const rp_budget *b = t->account.budget;
    char lost[RP_LOST_TEXT_BYTES];

    if (t->paused & (op->is_insert ? RP_SIDE_INSERTS : RP_SIDE_SAMPLES))
        (void)snprintf(text, size, "%s", paused_text(op->is_insert));
    else if (rp_events_is_behind_locked(t))
        (void)snprintf(text, size, "deferred extensions are %zu events behind, the bound is %d",
                       t->events.deferred_count, RP_MAX_DEFERRED_EVENTS);
    else if (rp_table_log_of(t) != NULL &&
             rp_table_log_of(t)->is_behind(rp_table_log_of(t), op->is_insert))
        (void)snprintf(text, size,
                       "the journal is behind: the disk does not keep up, or cannot be "
                       "written");
    else if (op->is_insert && !rp_rate_limiter_can_insert(&t->limiter, 1))
        append_paused_locked(t, false, rp_rate_limiter_why_no_insert(&t->limiter, text, size),
                             size);
    else if (op->is_insert && op->waits_for_disk)
        (void)snprintf(text, size,
                       "insert waits for room on the disk, which is full: delete items or make "
                       "room");
    else if (op->is_insert &&
             rp_account_small_shortage(&t->account, op->items[op->done].trajectory) > 0)
        (void)snprintf(
            text, size,
            "insert waits for memory: items and chunks below %d bytes, which never go to disk, "
            "take %llu of %llu bytes%s; deletes or evictions would release it",
            (int)RP_CHUNK_APART_BYTES, (unsigned long long)rp_account_small(&t->account),
            (unsigned long long)b->spill->limit, rp_budget_lost_text(b, lost));
    else if (op->is_insert && !rp_account_has_room(&t->account, op->items[op->done].trajectory))
        (void)snprintf(text, size,
                       "insert waits for memory: %llu of %llu bytes are taken%s; %s",
                       (unsigned long long)atomic_load(&b->spill->resident),
                       (unsigned long long)b->spill->limit, rp_budget_lost_text(b, lost),
                       atomic_load(&b->spill->is_failing)
                           ? "the disk cannot be written: make room there, or see to it"
                           : "it goes on as chunks are written to disk and samples released");
    else if (op->is_insert && atomic_load(&b->lost) > 0)
        (void)snprintf(
            text, size,
            "insert waits for bytes: all tables together take %llu of %llu, and the item needs "
            "up to %zu%s; %s",
            (unsigned long long)rp_budget_used(b), (unsigned long long)b->limit,
            op->items[op->done].trajectory->cost, rp_budget_lost_text(b, lost),
            b->policy == RP_BUDGET_EVICT ? "items of the largest table are being evicted for it"
                                         : "deletes or Reset would release both");
    else if (op->is_insert)
        (void)snprintf(
            text, size,
            "insert waits for bytes: all tables together take %llu of %llu, of these %llu for "
            "indexes without items, and the item needs up to %zu; deletes, evictions or "
            "dropped tables would release it",
            (unsigned long long)rp_budget_used(b), (unsigned long long)b->limit,
            (unsigned long long)atomic_load(&b->idle), op->items[op->done].trajectory->cost);
    else if (t->options.max_size < t->limiter.options.min_size && !t->options.soft_limit)
        (void)snprintf(
            text, size,
            "sample waits for %lld items, but max_size is %lld: it will wait for ever",
            (long long)t->limiter.options.min_size, (long long)t->options.max_size);
    else
        append_paused_locked(t, true, why_no_sample_locked(t, op, text, size), size);
    return text;
}

/* The number of operations that wait ahead of one. Takes constant time, as thousands may be
 * completed at once. The numbers of a queue have gaps where operations have left its middle;
 * then the result is an upper bound, and `*exact` is false. */
static size_t count_ahead_locked(rp_table *t, const rp_op *op, bool *exact) RP_REQUIRES(t->mu)
{
    const rp_queue *q = queue_of(t, op);
    size_t ahead, queued = q->count - q->behind;

    *exact = !op->parked || op->ahead == NULL;
    if (!op->parked) return q->count;
    if (!*exact) return q->count - 1;
    assert(q->first != NULL && q->last != NULL && op->number >= q->first->number); /* O2 */
    ahead = (size_t)(op->number - q->first->number);
    if (ahead > 0 && queued <= (size_t)(q->last->number - q->first->number)) *exact = false;
    return ahead < queued ? ahead : queued - 1;
}

/* Why an operation waits. Returns `text`. */
static char *why_locked(rp_table *t, const rp_op *op, char *text, size_t size)
    RP_REQUIRES(t->mu)
{
    const rp_queue *q = queue_of(t, op);
    bool exact;
    size_t ahead = count_ahead_locked(t, op, &exact), used;

    text[0] = '\0';
    if (ahead > 0)
        (void)snprintf(text, size, "%s%zu %s ahead; ", exact ? "" : "at most ", ahead,
                       ahead == 1 ? "other waits" : "others wait");
    used = strlen(text);
    (void)why_blocked_locked(t, ahead > 0 && q->first != NULL ? q->first : op, text + used,
                             size - used);
    return text;
}

/* Completes an operation that will not proceed. A sample that has drawn items completes with
 * RP_OK. */
static void give_up_locked(rp_table *t, rp_op *op, rp_status status, const char *what)
    RP_REQUIRES(t->mu)
{
    char why[RP_ERROR_TEXT_BYTES];

    if (!op->is_insert && op->done > 0) {
        (void)rp_op_end(op, RP_OK);
        return;
    }
    (void)why_locked(t, op, why, sizeof why);
    op->status =
        rp_fail(&op->error, status, "table '%.60s' %s: %s", t->options.name, what, why);
}

static const char *what_happened(rp_status status)
{
    return status == RP_DEADLINE ? "timed out" : "wait was ended";
}

void rp_table_end_parked_locked(rp_table *t, const char *text)
{
    rp_queue *queues[] = {&t->inserts, &t->samples};
    size_t left = RP_BLOCK;

    assert(t->closed);
    for (int i = 0; i < 2; i++)
        while (queues[i]->first != NULL) {
            rp_op *op = queues[i]->first;

            if (left-- == 0) { /* other threads get a turn, and on_done is called */
                rp_table_unlock(t);
                rp_mutex_lock(&t->mu);
                left = RP_BLOCK;
                continue; /* the first operation may have been withdrawn */
            }
            give_up_locked(t, op, RP_CANCELLED, text);
            finish_parked_locked(t, op);
        }
}

/* Parks an operation that cannot proceed, or completes it if it must not wait. True if it is
 * complete. */
static bool wait_or_end_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu)
{
    if (op->until_ns != RP_NOW) {
        park_locked(t, op);
        return false;
    }
    give_up_locked(t, op, RP_DEADLINE, "would have to wait");
    if (t->inserts.count == 0) rp_table_stop_waiting_for_bytes_locked(t);
    return true;
}

static bool refuse_closed_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu)
{
    if (!t->closed) return false;
    op->status = rp_table_refuse_closed(t, &op->error);
    return true;
}

/* Initialises the private fields and results of an operation. RP_INVALID. */
static rp_status begin(rp_table *t, rp_op *op, bool is_insert)
{
    op->table = t;
    op->is_insert = is_insert;
    op->done = 0;
    op->refused = 0;
    op->lsn = op->claimed = 0;
    op->held_bytes = op->lacked_bytes = op->more_bytes = 0;
    op->status = RP_OK;
    op->parked = op->was_parked = op->waits_for_disk = false;
    op->prev = op->next = op->ahead = op->behind = NULL;
    if (op->until_ns != RP_NOW && op->on_done == NULL)
        return rp_fail(&op->error, RP_INVALID,
                       "table '%s': an operation that may wait needs an on_done",
                       t->options.name);
    if (is_insert && op->count > RP_MAX_BATCH)
        return rp_fail(&op->error, RP_INVALID,
                       "table '%s': %zu items in one call, the bound is %d", t->options.name,
                       op->count, RP_MAX_BATCH);
    return RP_OK;
}

bool rp_table_start_insert(rp_table *t, rp_op *op)
{
    rp_prepared block[RP_BLOCK];
    bool over = false, parked = false;
    size_t count;

    op->status = begin(t, op, true);
    if (op->status != RP_OK || op->count == 0) return true;
    count = rp_insert_block_size(op, RP_BLOCK);
    op->status = rp_insert_check(t, op, count);
    if (op->status != RP_OK) return true;
    while (!over && !parked) {
        size_t first = op->done, done;
        uint64_t claimed;
        int64_t wall_ns = t->wall_ns(t->wall_ctx);
        rp_progress now = RP_BLOCKED;

        op->status = rp_insert_prepare(t, op, first, count, block, &op->error);
        if (op->status != RP_OK) return true;
        rp_mutex_lock(&t->mu);
        over = refuse_closed_locked(t, op);
        if (!over && t->inserts.count == 0)
            now = rp_insert_block_locked(t, op, block, count, wall_ns);
        done = op->done - first;
        claimed = op->claimed;
        op->claimed = 0;
        if (!over && now == RP_BLOCKED) {
            over = wait_or_end_locked(t, op);
            parked = !over;
        } else if (now == RP_YIELD && op->until_ns != RP_NOW) {
            /* First in the queue, so that no other insert takes the room it has made. */
            park_locked(t, op);
            parked = true;
        }
        over |= now == RP_OVER;
        rp_table_unlock(t); /* a parked operation may be freed from here on */
        rp_insert_unclaim(t, claimed);
        rp_insert_clean_up(block, count, done);
        if (!over && !parked) count = rp_insert_block_size(op, RP_BLOCK);
    }
    return over;
}

bool rp_table_start_sample(rp_table *t, rp_op *op)
{
    rp_progress now = RP_YIELD;
    bool over = false;

    op->status = begin(t, op, false);
    if (op->status == RP_OK) op->status = rp_sample_check(t, op);
    if (op->status != RP_OK) return true;
    while (!over && now == RP_YIELD) {
        now = RP_BLOCKED;
        rp_mutex_lock(&t->mu);
        over = refuse_closed_locked(t, op);
        if (over && op->done > 0) (void)rp_op_end(op, RP_OK); /* closed after a RP_YIELD */
        if (!over && t->samples.count == 0) now = rp_sample_run_locked(t, op);
        if (now == RP_OVER) over = true;
        if (now == RP_BLOCKED && !over && op->done > 0 && op->done >= rp_sample_least(op))
            over = rp_op_end(op, RP_OK) == RP_OVER; /* it has at_least items; others wait */
        if (now == RP_BLOCKED && !over) over = wait_or_end_locked(t, op);
        rp_table_unlock(t);
    }
    if (!over) return false; /* the operation may be freed already */
    rp_sample_finish(op);
    return rp_op_load(op);
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
    rp_table_unlock(t); /* operations behind it in the queue may proceed */
    if (!was_parked) return false;
    rp_op_finish(op);
    return rp_op_load(op);
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
    rp_table_unlock(t);
    return earliest;
}

static void describe_locked(rp_table *t, const rp_op *op, int64_t now_ns, rp_waiting *out)
    RP_REQUIRES(t->mu)
{
    *out = (rp_waiting){
        .is_insert = op->is_insert,
        .wanted = op->is_insert ? op->count : op->options->count,
        .done = op->done,
        .waiting_ns = now_ns - op->started_ns,
        .until_ns = op->until_ns,
    };
    (void)why_locked(t, op, out->why, sizeof out->why);
}

size_t rp_table_waiting(rp_table *t, rp_waiting *out, size_t capacity)
{
    return rp_table_waiting_clients(t, out, NULL, capacity);
}

size_t rp_table_waiting_clients(rp_table *t, rp_waiting *out, uint64_t *clients,
                                size_t capacity)
{
    rp_queue *queues[] = {&t->inserts, &t->samples};
    int64_t now_ns;
    size_t n = 0;

    rp_mutex_lock(&t->mu);
    now_ns = rp_now_ns();
    for (int i = 0; i < 2; i++) {
        for (const rp_op *op = queues[i]->first; op != NULL && n < capacity; op = op->next) {
            if (clients != NULL) clients[n] = op->client;
            describe_locked(t, op, now_ns, &out[n++]);
        }
        for (const rp_op *first = queues[i]->first; first != NULL && n < capacity;
             first = first->next)
            for (const rp_op *op = first->behind; op != NULL && n < capacity; op = op->behind) {
                if (clients != NULL) clients[n] = op->client;
                describe_locked(t, op, now_ns, &out[n++]);
            }
    }
    n = t->inserts.count + t->samples.count;
    rp_mutex_unlock(&t->mu);
    return n;
}
