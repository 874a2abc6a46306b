/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that inserts items into tables of this process.
 *
 * put() makes batches, each for one table, which stay in a list until all their items are
 * settled. A batch that is the first of its table inserts as many items as it can at once; the
 * others wait in the table, in one operation. A batch behind another of the same table starts
 * when that one is over, so order is kept.
 *
 *   QUEUED ──► RUNNING ──(items must wait)──► PARKED ──(on_done)──► RUNNING, or ENDED ──┐
 *                 ▲  ├──(with a journal, and some went in)───► HALTED ──────────────────┤
 *                 │  └──(all settled)──► reported and freed, or OVER ───────────────────┤
 *                 └──────────────── the job, which also calls on_settled ◄──────────────┘
 *
 * The thread that runs a batch also reports its items: that of put(), that of on_done(), which
 * is a thread that sampled or resumed the table, or the job. A thread in on_done() goes on with
 * batches that waited, so that what a caller draws next does not depend on when the job runs,
 * but it leaves the rest to the job after GUEST_ITEMS: it has work of its own. If a journal
 * holds up the report, only the job reports. With a journal, items wait one at a time, so that
 * each is confirmed when it is safe.
 *
 * Items of a PARKED batch that have been inserted are reported when the batch is over, or as
 * soon as enough of them are there for a writer that waits (await()): a report wakes a thread,
 * which costs more than an insert.
 *
 * close() waits for the job and for threads in on_done(), and does not let them start again, so
 * it finds every batch PARKED or not running.
 *
 * Invariants, whenever mu is free:
 *   B1  at <= count; confirmed + refused <= at: settled items that were not reported;
 *   B2  the list is doubly linked, from first to last;
 *   B3  at most one batch of a table is RUNNING or PARKED;
 *   B4  unreported is the sum of op_first + inserted - at over the PARKED batches. */
#include "client/sink/local_sink.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "store/store.h"
#include "table/op.h"
#include "table/table_log.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/mutex.h"

enum {
    SAFE_AGAIN_MS = 50,
    REPORTED_AT_ONCE = 64,
    GUEST_ITEMS = 128, /* after so many, a thread in on_done() leaves batches to the job */
};

typedef enum batch_state { QUEUED, RUNNING, PARKED, ENDED, HALTED, OVER } batch_state;

typedef struct local_sink local_sink;

typedef struct batch batch;
struct batch {
    batch *prev, *next; /* in the list of batches */
    batch_state state;  /* guarded by the sink's lock */
    local_sink *sink;
    size_t size_bytes;
    const char *name; /* of the table */
    rp_table *table;  /* a reference; NULL: not found yet */
    rp_op op;
    size_t op_first;  /* the item at which the operation begins */
    size_t inserted;  /* items of the operation that a PARKED batch has inserted; guarded by the
                         sink's lock */
    size_t count, at; /* items, and how many are settled; `at` of a PARKED batch is guarded by
                         the sink's lock */
    bool is_one_by_one; /* an operation of several items has failed */
    /* settled items that on_settled has not reported */
    size_t confirmed, refused;
    uint64_t lsn;     /* at which the confirmed items are safe (table/table_log.h) */
    rp_error refusal; /* of the first refused item */
    uint64_t *keys;   /* of the confirmed items from the front, of the refused from the end */
    rp_insert items[];
};

struct local_sink {
    rp_sink sink; /* first */
    rp_allocator alloc;
    rp_store *store;
    rp_runtime *runtime;
    rp_sink_events events;
    rp_job job;
    rp_mutex mu; /* rank 78 */
    rp_cond cv;
    batch *first, *last RP_GUARDED_BY(mu); /* the list of batches */
    bool busy RP_GUARDED_BY(mu);           /* the job is submitted, or runs */
    bool closing RP_GUARDED_BY(mu);
    size_t threads RP_GUARDED_BY(mu);    /* in on_done() */
    uint64_t reported RP_GUARDED_BY(mu); /* items, since the sink was made */
    size_t unreported RP_GUARDED_BY(mu); /* B4 */
    uint64_t awaited RP_GUARDED_BY(mu);  /* items that shall have been reported; await() */
};

static void kick_locked(local_sink *s) RP_REQUIRES(s->mu)
{
    if (s->busy || s->closing) return;
    s->busy = true;
    rp_runtime_submit(s->runtime, &s->job);
}

static void append_locked(local_sink *s, batch *b) RP_REQUIRES(s->mu)
{
    b->prev = s->last;
    b->next = NULL;
    *(s->last == NULL ? &s->first : &s->last->next) = b;
    s->last = b;
}

static void remove_locked(local_sink *s, batch *b) RP_REQUIRES(s->mu)
{
    assert(b->prev == NULL ? s->first == b : b->prev->next == b); /* B2 */
    assert(b->next == NULL ? s->last == b : b->next->prev == b);
    *(b->prev == NULL ? &s->first : &b->prev->next) = b->next;
    *(b->next == NULL ? &s->last : &b->next->prev) = b->prev;
}

/* Returns true if an earlier batch of the same table is not over. */
static bool is_behind_locked(const batch *b)
{
    for (const batch *other = b->prev; other != NULL; other = other->prev)
        if (other->state != OVER && strcmp(other->name, b->name) == 0) return true;
    return false;
}

static void free_batch(batch *b)
{
    rp_allocator alloc = b->sink->alloc;

    assert(b->at <= b->count); /* B1 */
    for (size_t i = b->at; i < b->count; i++) rp_trajectory_unref(b->items[i].trajectory);
    rp_table_unref(b->table);
    rp_release(&alloc, b, b->size_bytes);
}

static void confirm(batch *b, size_t count)
{
    assert(count <= b->count - b->at); /* B1 */
    for (size_t i = 0; i < count; i++) b->keys[b->confirmed++] = b->items[b->at++].key;
}

static void refuse(batch *b, rp_status status, const char *text)
{
    assert(b->at < b->count && b->confirmed + b->refused < b->count); /* B1 */
    if (b->refused == 0) (void)rp_fail(&b->refusal, status, "%s", text);
    b->keys[b->count - 1 - b->refused] = b->items[b->at].key;
    rp_trajectory_unref(b->items[b->at].trajectory);
    b->refused++;
    b->at++;
}

/* True if reporting the inserted items would end the wait of a writer. */
static bool is_awaited_locked(const local_sink *s) RP_REQUIRES(s->mu)
{
    if (s->awaited == RP_AWAIT_ANY) return s->unreported > 0;
    return s->awaited > s->reported && s->reported + s->unreported >= s->awaited;
}

/* Called under the table's lock: the operation is parked, or has inserted some items. If a
 * writer waits for these items, ends the operation, so that on_done() reports them. */
static void on_progress(rp_op *op)
{
    batch *b = op->user;
    local_sink *s = b->sink;

    rp_mutex_lock(&s->mu);
    assert(b->state == RUNNING || b->state == PARKED);
    if (op->lsn == 0) {
        s->unreported += op->done - b->inserted; /* B4 */
        b->inserted = op->done;
        if (b->state == PARKED && is_awaited_locked(s)) op->count = op->done;
    }
    b->state = PARKED;
    rp_mutex_unlock(&s->mu);
}

static void refuse_gone(batch *b)
{
    rp_error err;
    rp_status st =
        rp_store_no_table(b->sink->store, (rp_string){b->name, strlen(b->name)}, &err);

    refuse(b, st, err.text);
}

/* Counts the items that an operation has inserted. A failure is attributed to the next item
 * only if the operation had one item: of several, any may have caused it. */
static void absorb(batch *b)
{
    size_t tried = b->op.count;

    assert(b->op.done <= tried && b->op_first + b->op.done >= b->at);
    confirm(b, b->op_first + b->op.done - b->at);
    if (b->op.lsn > b->lsn) b->lsn = b->op.lsn;
    b->is_one_by_one = b->op.status != RP_OK && tried > 1;
    if (b->op.status == RP_OK || tried > 1) return;
    if (b->op.status == RP_CANCELLED && rp_table_is_dropped(b->table))
        refuse_gone(b);
    else
        refuse(b, b->op.status, b->op.error.text);
}

static void on_done(rp_op *op);

static void prepare(batch *b, size_t count, int64_t until_ns)
{
    memset(&b->op, 0, offsetof(rp_op, error));
    b->op.items = b->items + b->at;
    b->op.count = count;
    b->op.until_ns = until_ns;
    b->op.on_done = on_done;
    b->op.on_progress = on_progress;
    b->op.user = b;
    b->op_first = b->at;
    b->inserted = 0;
}

static bool find_table(batch *b)
{
    rp_string name = {b->name, strlen(b->name)};

    if (b->table == NULL) b->table = rp_store_find_table(b->sink->store, name);
    if (b->table != NULL) return true;
    while (b->at < b->count) refuse_gone(b);
    return false;
}

/* Inserts the items that need not wait. */
static void insert_now(batch *b)
{
    bool over;

    prepare(b, b->count - b->at, RP_NOW);
    over = rp_table_start_insert(b->table, &b->op);
    assert(over); /* RP_NOW */
    (void)over;
    absorb(b);
}

/* Leaves a batch to the job. */
static void rest(batch *b, batch_state state)
{
    local_sink *s = b->sink;

    rp_mutex_lock(&s->mu);
    b->state = state;
    kick_locked(s);
    rp_mutex_unlock(&s->mu);
}

/* Waits until the inserted items are safe, without a time limit. Returns false if the sink is
 * closed first. */
static bool wait_safe(batch *b)
{
    local_sink *s = b->sink;
    bool closing = false;

    while (!closing && rp_table_wait_durable(b->table, RP_OK, b->lsn, rp_wait_ms(SAFE_AGAIN_MS),
                                             NULL) != RP_OK) {
        rp_mutex_lock(&s->mu);
        if (!s->closing) (void)rp_cond_wait(&s->cv, &s->mu, rp_wait_ms(SAFE_AGAIN_MS).until_ns);
        closing = s->closing;
        rp_mutex_unlock(&s->mu);
    }
    return !closing;
}

/* Reports the settled items that were not reported yet. */
static void tell(batch *b)
{
    const rp_sink_events *e = &b->sink->events;

    if (b->confirmed > 0 && b->lsn > 0 && !wait_safe(b)) return;
    rp_mutex_lock(&b->sink->mu);
    b->sink->reported += b->confirmed + b->refused;
    rp_mutex_unlock(&b->sink->mu);
    if (b->confirmed > 0) e->on_settled(e->user, b->keys, b->confirmed, RP_OK, "");
    if (b->refused > 0)
        e->on_settled(e->user, b->keys + b->count - b->refused, b->refused, b->refusal.code,
                      b->refusal.text);
    b->confirmed = b->refused = 0;
}

/* Starts the operation. Returns false if it waits: then another thread may free the batch, and
 * with it the last reference to the table, before the table's call has returned. */
static bool start(batch *b)
{
    rp_table *table = rp_table_ref(b->table);
    bool is_over = rp_table_start_insert(table, &b->op);

    rp_table_unref(table);
    return is_over;
}

/* Inserts until all items are settled, or one must wait. Returns true in the first case; the
 * batch is then still RUNNING. In the second case another thread may have freed it. */
static bool run_batch(batch *b)
{
    bool found = find_table(b), is_logged = found && rp_table_log_of(b->table) != NULL;

    while (found && b->at < b->count) {
        if (is_logged && b->count - b->at > 1) insert_now(b);
        if (b->at == b->count) break;
        if (b->confirmed + b->refused > 0) { /* reports them before the next item waits */
            if (is_logged || b->lsn > 0) {
                rest(b, HALTED);
                return false;
            }
            tell(b);
        }
        prepare(b, is_logged || b->is_one_by_one ? 1 : b->count - b->at, RP_FOREVER);
        if (!start(b)) return false; /* on_progress: PARKED */
        absorb(b);
    }
    return true;
}

/* Reports items of PARKED batches that have been inserted. */
static void report_progress(local_sink *s)
{
    uint64_t keys[REPORTED_AT_ONCE];
    size_t count;

    do {
        count = 0;
        rp_mutex_lock(&s->mu);
        for (batch *b = s->first; count < REPORTED_AT_ONCE && count < s->unreported;
             b = b->next) {
            assert(b != NULL); /* B4 */
            if (b->state != PARKED) continue;
            while (b->at < b->op_first + b->inserted && count < REPORTED_AT_ONCE)
                keys[count++] = b->items[b->at++].key;
        }
        assert(s->unreported >= count); /* B4 */
        s->unreported -= count;
        s->reported += count;
        rp_mutex_unlock(&s->mu);
        if (count > 0) s->events.on_settled(s->events.user, keys, count, RP_OK, "");
    } while (count == REPORTED_AT_ONCE);
}

/* Returns a batch that the job can report or run, or NULL. */
static batch *find_work_locked(local_sink *s) RP_REQUIRES(s->mu)
{
    for (batch *b = s->first; b != NULL; b = b->next) {
        if (b->state == ENDED || b->state == HALTED || b->state == OVER) return b;
        if (b->state == QUEUED && !is_behind_locked(b)) return b;
    }
    return NULL;
}

/* Finds a batch that waited for its turn, and makes it RUNNING. */
static batch *next_queued_locked(local_sink *s) RP_REQUIRES(s->mu)
{
    for (batch *b = s->first; b != NULL && !s->closing; b = b->next) {
        if (b->state != QUEUED || is_behind_locked(b)) continue;
        b->state = RUNNING;
        return b;
    }
    return NULL;
}

/* Ends a batch whose items are settled. Reports them on this thread, which costs less than a
 * handover to the job, unless the report has to wait for the journal. Returns the batch that
 * this thread runs next, or NULL; `*left` is the number of items after which it runs no more.
 */
static batch *end_batch(batch *b, size_t *left)
{
    local_sink *s = b->sink;
    batch *next = NULL;

    *left -= b->count < *left ? b->count : *left;
    if (b->confirmed > 0 && b->lsn > 0) {
        rest(b, OVER);
        return NULL;
    }
    rp_mutex_lock(&s->mu);
    assert(b->state == RUNNING);
    remove_locked(s, b);
    if (*left > 0) next = next_queued_locked(s);
    rp_mutex_unlock(&s->mu);
    tell(b);
    free_batch(b);
    if (*left > 0) return next;
    rp_mutex_lock(&s->mu);
    if (find_work_locked(s) != NULL) kick_locked(s);
    rp_mutex_unlock(&s->mu);
    return NULL;
}

/* Runs a batch, and those that waited for it, until `most` items are settled. */
static void drive(batch *b, size_t most)
{
    local_sink *s = b->sink;
    bool is_awaited;

    while (b != NULL && run_batch(b)) b = end_batch(b, &most);
    /* A batch that is parked may have inserted items before, and reports add up. */
    rp_mutex_lock(&s->mu);
    is_awaited = is_awaited_locked(s);
    rp_mutex_unlock(&s->mu);
    if (is_awaited) report_progress(s);
}

static void on_done(rp_op *op)
{
    batch *b = op->user;
    local_sink *s = b->sink;
    bool is_own;

    rp_mutex_lock(&s->mu);
    assert(b->state == PARKED);
    s->unreported -= b->op_first + b->inserted - b->at; /* B4 */
    is_own = !s->closing && op->lsn == 0;
    b->state = is_own ? RUNNING : ENDED;
    if (is_own) {
        s->threads++;
    } else {
        kick_locked(s);
        rp_cond_signal(&s->cv);
    }
    rp_mutex_unlock(&s->mu);
    if (!is_own) return;
    absorb(b);
    drive(b, GUEST_ITEMS);
    rp_mutex_lock(&s->mu);
    s->threads--;
    if (s->closing) rp_cond_signal(&s->cv);
    rp_mutex_unlock(&s->mu);
}

static void run_job(rp_job *job)
{
    local_sink *s = (local_sink *)(void *)((char *)job - offsetof(local_sink, job));
    batch *b;

    rp_mutex_lock(&s->mu);
    assert(s->busy);
    while (!s->closing && (b = find_work_locked(s)) != NULL) {
        batch_state was = b->state;
        if (was == OVER)
            remove_locked(s, b);
        else
            b->state = RUNNING;
        rp_mutex_unlock(&s->mu);
        if (was == ENDED) absorb(b);
        if (was != QUEUED) tell(b);
        if (was == OVER)
            free_batch(b);
        else
            drive(b, SIZE_MAX);
        rp_mutex_lock(&s->mu);
    }
    if (!s->closing && is_awaited_locked(s)) { /* what was reported counts */
        rp_mutex_unlock(&s->mu);
        report_progress(s);
        rp_mutex_lock(&s->mu);
    }
    s->busy = false;
    if (!s->closing && find_work_locked(s) != NULL) kick_locked(s); /* meanwhile */
    rp_cond_signal(&s->cv);
    rp_mutex_unlock(&s->mu);
}

static batch *make_batch(local_sink *s, const rp_sink_item *items, size_t count)
{
    size_t size = sizeof(batch) + count * (sizeof(rp_insert) + sizeof(uint64_t));
    batch *b = rp_alloc(&s->alloc, size);

    if (b == NULL) return NULL;
    memset(b, 0, sizeof *b);
    b->sink = s;
    b->size_bytes = size;
    b->name = items[0].table;
    b->count = count;
    b->keys = (uint64_t *)(void *)(b->items + count);
    for (size_t i = 0; i < count; i++)
        b->items[i] = (rp_insert){.key = items[i].key,
                                  .priority = items[i].priority,
                                  .trajectory = items[i].trajectory,
                                  .flags = RP_INSERT_TAKE};
    return b;
}

/* Returns how many of the items, from the first on, have the same table. */
static size_t run_length(const rp_sink_item *items, size_t count)
{
    size_t n = 1;

    assert(count >= 1);
    while (n < count &&
           (items[n].table == items[0].table || strcmp(items[n].table, items[0].table) == 0))
        n++;
    return n;
}

static rp_status put(rp_sink *sink, const rp_sink_item *items, size_t count, rp_error *err)
{
    local_sink *s = (local_sink *)sink;
    batch *list = NULL, **end = &list;

    for (size_t at = 0; at < count;) {
        size_t n = run_length(items + at, count - at);
        batch *b = *end = make_batch(s, items + at, n);
        if (b == NULL) {
            while (list != NULL) { /* the caller keeps the trajectories */
                b = list;
                list = b->next;
                rp_release(&s->alloc, b, b->size_bytes);
            }
            return rp_fail_memory(err, n * sizeof(rp_insert));
        }
        end = &b->next;
        at += n;
    }
    while (list != NULL) {
        batch *b = list;
        bool runs;
        list = b->next;
        rp_mutex_lock(&s->mu);
        append_locked(s, b);
        runs = !is_behind_locked(b);
        b->state = runs ? RUNNING : QUEUED;
        rp_mutex_unlock(&s->mu);
        if (runs) drive(b, SIZE_MAX);
    }
    return RP_OK;
}

static void await(rp_sink *sink, uint64_t settled)
{
    local_sink *s = (local_sink *)sink;
    bool is_there;

    rp_mutex_lock(&s->mu);
    s->awaited = settled;
    is_there = settled <= s->reported || is_awaited_locked(s);
    rp_mutex_unlock(&s->mu);
    if (is_there) report_progress(s);
}

static void why(rp_sink *sink, char *text, size_t size)
{
    local_sink *s = (local_sink *)sink;
    rp_table *table = NULL;
    rp_waiting waiting;

    text[0] = 0;
    rp_mutex_lock(&s->mu);
    for (batch *b = s->first; b != NULL && table == NULL; b = b->next)
        if (b->state == PARKED && b->table != NULL) table = rp_table_ref(b->table);
    rp_mutex_unlock(&s->mu);
    if (table == NULL) return;
    if (rp_table_waiting(table, &waiting, 1) > 0)
        (void)snprintf(text, size, "table '%.64s': %s", rp_table_name(table), waiting.why);
    rp_table_unref(table);
}

/* Withdraws the operations of parked batches; waits for those that are completing. */
static void withdraw_all(local_sink *s)
{
    rp_mutex_lock(&s->mu);
    for (batch *b = s->first; b != NULL; b = b->next) {
        bool withdrawn;
        if (b->state != PARKED) continue;
        rp_mutex_unlock(&s->mu);
        withdrawn = rp_op_withdraw(&b->op, RP_CANCELLED);
        rp_mutex_lock(&s->mu);
        if (withdrawn) b->state = ENDED;
        while (b->state == PARKED) (void)rp_cond_wait(&s->cv, &s->mu, RP_FOREVER);
    }
    rp_mutex_unlock(&s->mu);
}

static void close_sink(rp_sink *sink)
{
    local_sink *s = (local_sink *)sink;
    rp_allocator alloc = s->alloc;

    rp_mutex_lock(&s->mu);
    s->closing = true;
    rp_cond_signal(&s->cv); /* the job may be waiting for the journal */
    while (s->busy || s->threads > 0) (void)rp_cond_wait(&s->cv, &s->mu, RP_FOREVER);
    rp_mutex_unlock(&s->mu);
    withdraw_all(s);
    while (s->first != NULL) {
        batch *b = s->first;
        s->first = b->next;
        if (b->state == ENDED) b->at = b->op_first + b->op.done; /* the table has taken these */
        free_batch(b);
    }
    rp_cond_deinit(&s->cv);
    rp_mutex_deinit(&s->mu);
    rp_release(&alloc, s, sizeof *s);
}

rp_status rp_local_sink_open(const rp_allocator *alloc, rp_store *store, rp_runtime *runtime,
                             const rp_sink_events *events, rp_sink **out, rp_error *err)
{
    static const rp_sink_class class = {
        .put = put, .await = await, .why = why, .close = close_sink};
    local_sink *s = rp_alloc_zero(alloc, sizeof *s);

    if (s == NULL) return rp_fail_memory(err, sizeof *s);
    s->sink.class = &class;
    s->alloc = *alloc;
    s->store = store;
    s->runtime = runtime;
    s->events = *events;
    s->job.run = run_job;
    rp_mutex_init(&s->mu, RP_RANK_CLIENT);
    rp_cond_init(&s->cv);
    *out = &s->sink;
    return RP_OK;
}
