/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rpc/insert_batch.h"

#include <assert.h>

#include "chunk/keep.h"
#include "server/core/deferral.h"
#include "server/core/pinned.h"
#include "server/core/worker.h"
#include "server/rpc/methods.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    FIRST_BATCH = 16, /* capacity of a new batch, in items */
    MAX_IDLE_BATCHES = 64,
    BATCH_WORK = 4,         /* units of work to start a batch (deferral.h) */
    SEARCHED_OF_A_UNIT = 4, /* parked batches that are searched, for a unit of work */
    OPEN_BYTES = 1 << 20,   /* if open batches have so many, the next message starts them */
};
#define NOT_WAITING SIZE_MAX

static void free_batch(rp_worker *worker, rp_insert_batch *batch)
{
    rp_release(&worker->server->alloc, batch->items, batch->capacity * sizeof *batch->items);
    rp_release(&worker->server->alloc, batch, sizeof *batch);
}

static void release_batch(rp_insert_batch *batch)
{
    rp_worker *worker = batch->worker;

    assert(batch->served != NULL);
    rp_served_table_unref(batch->served);
    batch->served = NULL;
    assert(worker->idle_batch_count <= MAX_IDLE_BATCHES);
    if (worker->idle_batch_count == MAX_IDLE_BATCHES) {
        free_batch(worker, batch);
        return;
    }
    batch->next = worker->idle_batches;
    worker->idle_batches = batch;
    worker->idle_batch_count++;
}

void rp_insert_batches_free(rp_worker *worker)
{
    while (worker->idle_batches != NULL) {
        rp_insert_batch *batch = worker->idle_batches;
        worker->idle_batches = batch->next;
        free_batch(worker, batch);
    }
    rp_item_room_deinit(&worker->item_room, &worker->server->alloc);
}

static void on_batch_posted(rp_post *post);
static void on_progress_posted(rp_post *post);

static void on_batch_done(rp_op *op)
{
    rp_insert_batch *batch = op->user;

    rp_loop_post(batch->worker->loop, &batch->post);
}

/* Takes references to the waiting items, because other threads may insert them and evict them
 * again while the batch is parked. */
static void begin_to_wait(rp_insert_batch *batch, size_t from)
{
    batch->waiting_from = from;
    for (size_t i = from; i < batch->count; i++)
        (void)rp_trajectory_ref(batch->items[i].trajectory);
}

/* Called under the table's lock, so `progress` is posted before `post`, and runs before it. */
static void on_batch_progress(rp_op *op)
{
    rp_insert_batch *batch = op->user;

    if (batch->waiting_from == NOT_WAITING) begin_to_wait(batch, op->done);
    if (op->done == 0) return;
    atomic_store_explicit(&batch->in_lsn, op->lsn, memory_order_relaxed);
    atomic_store_explicit(&batch->in, op->done, memory_order_release);
    if (!atomic_exchange_explicit(&batch->is_progress, true, memory_order_acq_rel))
        rp_loop_post(batch->worker->loop, &batch->progress);
}

static rp_insert_batch *new_batch(rp_worker *worker)
{
    rp_insert_batch *batch = worker->idle_batches;

    if (batch != NULL) {
        assert(worker->idle_batch_count > 0 && batch->worker == worker);
        worker->idle_batches = batch->next;
        worker->idle_batch_count--;
    } else {
        batch = rp_alloc_zero(&worker->server->alloc, sizeof *batch);
        if (batch == NULL) return NULL;
        batch->worker = worker;
        batch->post.run = on_batch_posted;
        batch->progress.run = on_progress_posted;
    }
    batch->count = 0;
    batch->message = 0;
    batch->bytes = 0;
    return batch;
}

/* Makes room for one item more. */
static bool reserve_item(rp_insert_batch *batch)
{
    size_t capacity = batch->capacity < FIRST_BATCH ? FIRST_BATCH : 2 * batch->capacity;

    assert(batch->count <= batch->capacity && batch->count < RP_MAX_INSERT_BATCH);
    if (batch->count < batch->capacity) return true;
    if (!rp_resize_array(&batch->worker->server->alloc, &batch->items, batch->capacity,
                         capacity, sizeof *batch->items))
        return false;
    batch->capacity = capacity;
    return true;
}

static void drop_items(rp_insert_batch *batch, size_t from)
{
    for (size_t i = from; i < batch->count; i++)
        rp_trajectory_unref(batch->items[i].trajectory);
}

/* Adds the keys of inserted items to the confirmations. They are sent once they are safe. */
static void confirm(rp_insert_stream *stream, const rp_insert *items, size_t count,
                    uint64_t lsn)
{
    rp_task *task = &stream->task;
    rp_worker *worker = rp_task_worker(task);
    uint64_t next;

    if (task->is_finished) return;
    if (rp_confirmations_add(&stream->confirmed, &worker->server->alloc, items, count, lsn,
                             rp_safe_now(rp_insert_safety(stream))) != RP_OK) {
        rp_task_abort(task, RP_NO_RESOURCE, "out of memory for confirmations");
        return;
    }
    next = rp_confirmations_next(&stream->confirmed);
    if (next != 0 && task->safe.lsn == 0)
        rp_safe_wait_begin(&worker->safe_waits, &task->safe, next);
    rp_task_touch(task);
}

/* The first `done` items have been inserted: confirms and counts those that have not been
 * confirmed yet. */
static void confirm_more(rp_insert_stream *stream, rp_insert_batch *batch, size_t done,
                         uint64_t lsn)
{
    rp_worker *worker = batch->worker;
    rp_table_counters *counters = rp_table_metrics_loop(batch->served->metrics, worker->index);
    size_t before = batch->confirmed, more = done - before;

    assert(before <= done && done <= batch->count);
    if (more == 0) return;
    batch->confirmed = done;
    rp_counter_add(&counters->inserted_items, more);
    rp_histogram_record(&counters->insert_ns, rp_now_ns() - batch->came_ns, more);
    confirm(stream, batch->items + before, more,
            lsn); /* may end the stream, and free a parked batch */
}

/* An operation has completed. */
static void settle(rp_insert_stream *stream, rp_insert_batch *batch)
{
    drop_items(batch, batch->op.done);
    confirm_more(stream, batch, batch->op.done, batch->op.lsn);
    if (batch->op.status != RP_OK)
        rp_task_abort(&stream->task, batch->op.status, batch->op.error.text);
}

/* W5. Each chunk counts in `held` of one batch only. */
static void keep_chunks(rp_insert_stream *stream, rp_insert_batch *batch)
{
    size_t change = 0, bytes = 0;

    for (size_t i = batch->waiting_from; i < batch->count; i++) {
        const rp_trajectory *trajectory = batch->items[i].trajectory;
        for (uint32_t k = 0; k < trajectory->chunk_count; k++) {
            rp_chunk *chunk = trajectory->chunks[k];
            change += rp_chunk_keep(chunk);
            if (chunk->waits++ == 0 && rp_holders_count(&chunk->holders) == 0)
                bytes += rp_chunk_memory(chunk);
        }
    }
    batch->held = batch->own_bytes + bytes;
    stream->parked_bytes += batch->held;
    stream->task.connection->parked_bytes += batch->held;
    rp_pinned_keep(batch->worker, change);
}

static void unkeep_chunks(rp_insert_stream *stream, rp_insert_batch *batch)
{
    size_t change = 0;

    for (size_t i = batch->waiting_from; i < batch->count; i++) {
        const rp_trajectory *trajectory = batch->items[i].trajectory;
        for (uint32_t k = 0; k < trajectory->chunk_count; k++) {
            assert(trajectory->chunks[k]->waits > 0);
            trajectory->chunks[k]->waits--;
            change += rp_chunk_unkeep(trajectory->chunks[k]);
        }
    }
    stream->parked_bytes -= batch->held;
    stream->task.connection->parked_bytes -= batch->held;
    rp_pinned_keep(batch->worker, change);
}

void rp_insert_batches_update_held(rp_insert_stream *stream)
{
    for (rp_insert_batch *b = stream->parked; b != NULL; b = b->next) unkeep_chunks(stream, b);
    for (rp_insert_batch *b = stream->parked; b != NULL; b = b->next) keep_chunks(stream, b);
}

static void unpark(rp_insert_stream *stream, rp_insert_batch *batch)
{
    assert(batch->stream == stream);
    assert(batch->prev != NULL ? batch->prev->next == batch : stream->parked == batch);
    assert(stream->parked_bytes >= batch->held); /* W4 */
    *(batch->prev != NULL ? &batch->prev->next : &stream->parked) = batch->next;
    if (batch->next != NULL) batch->next->prev = batch->prev;
    unkeep_chunks(stream, batch);
    for (size_t i = batch->waiting_from; i < batch->count; i++)
        rp_trajectory_unref(batch->items[i].trajectory);
    rp_pinned_add(batch->worker, (size_t)0 - batch->own_bytes);
}

static void forget_pending(rp_insert_batch *batch)
{
    size_t before = atomic_fetch_sub_explicit(&batch->served->pending_inserts, batch->count,
                                              memory_order_relaxed);

    assert(before >= batch->count);
    (void)before;
}

/* Some items of a parked batch were inserted. */
static void on_progress_posted(rp_post *post)
{
    rp_insert_batch *batch =
        (rp_insert_batch *)((char *)post - offsetof(rp_insert_batch, progress));
    size_t in;

    /* An exchange, so that progress stored before it is read below, and later progress posts
     * again. */
    (void)atomic_exchange_explicit(&batch->is_progress, false, memory_order_acq_rel);
    if (batch->stream == NULL) return;
    in = atomic_load_explicit(&batch->in, memory_order_acquire); /* before in_lsn is read */
    confirm_more(batch->stream, batch, in,
                 atomic_load_explicit(&batch->in_lsn, memory_order_relaxed));
}

/* The operation of a parked batch has completed. */
static void on_batch_posted(rp_post *post)
{
    rp_insert_batch *batch =
        (rp_insert_batch *)((char *)post - offsetof(rp_insert_batch, post));
    rp_worker *worker = batch->worker;
    rp_insert_stream *stream = batch->stream;

    forget_pending(batch);
    if (stream == NULL) {
        drop_items(batch, batch->op.done);
    } else {
        unpark(stream, batch);
        settle(stream, batch);
        rp_insert_stream_continue(stream);
    }
    release_batch(batch);
    rp_worker_returned(worker);
}

/* Finds the operation of the stream that was parked last in the table, if there is one. */
static rp_op *find_parked(const rp_insert_stream *stream, const rp_served_table *served)
{
    rp_insert_batch *batch = stream->parked; /* the last one is the first */
    size_t searched = 0;

    for (; batch != NULL && batch->served != served; batch = batch->next) searched++;
    rp_defer_add_work(rp_task_worker(&stream->task), searched / SEARCHED_OF_A_UNIT);
    return batch != NULL ? &batch->op : NULL;
}

/* Starts the operation. True if it has completed. */
static bool run(rp_insert_batch *batch)
{
    size_t pending;

    batch->op = (rp_op){
        .items = batch->items,
        .count = batch->count,
        .until_ns = RP_FOREVER,
        .on_done = on_batch_done,
        .on_progress = on_batch_progress,
        .user = batch,
        .client = batch->stream->task.connection->client.id,
    };
    assert(batch->count > 0 && batch->count <= RP_MAX_INSERT_BATCH);
    batch->confirmed = 0;
    batch->waiting_from = NOT_WAITING;
    pending = atomic_fetch_add_explicit(&batch->served->pending_inserts, batch->count,
                                        memory_order_relaxed);
    if (pending > 0) batch->op.after = find_parked(batch->stream, batch->served);
    if (!rp_table_start_insert(batch->served->table, &batch->op)) return false;
    forget_pending(batch);
    return true;
}

static void park(rp_insert_stream *stream, rp_insert_batch *batch)
{
    batch->worker->outstanding++;
    batch->prev = NULL;
    batch->next = stream->parked;
    if (batch->next != NULL) batch->next->prev = batch;
    stream->parked = batch;
    assert(batch->waiting_from < batch->count);
    batch->own_bytes = sizeof *batch + batch->capacity * sizeof *batch->items;
    for (size_t i = batch->waiting_from; i < batch->count; i++)
        batch->own_bytes += batch->items[i].trajectory->item_cost;
    rp_pinned_add(batch->worker, batch->own_bytes);
    keep_chunks(stream, batch);
}

/* Called after the table has refused an item, and so has inserted nothing of the batch. Keeps
 * the messages before the one with that item, and drops the rest. False if there are no
 * messages before it. */
static bool cut(rp_insert_batch *batch)
{
    size_t begin = batch->op.refused;

    if (batch->op.done > 0) return false;
    assert(begin < batch->count);
    while (!batch->begins[begin]) begin--;
    if (begin == 0) return false;
    drop_items(batch, begin);
    batch->count = begin;
    return true;
}

/* Starts a batch, of which it takes ownership. */
static void start(rp_insert_stream *stream, rp_insert_batch *batch)
{
    rp_worker *worker = batch->worker;
    bool is_over = run(batch);
    rp_error refusal = {.code = RP_OK};

    rp_defer_add_work(worker, BATCH_WORK);
    while (is_over && batch->op.status == RP_INVALID && cut(batch)) {
        refusal = batch->op.error;
        is_over = run(batch);
    }
    if (is_over) {
        settle(stream, batch);
    } else {
        park(stream, batch);
        if (rp_pinned_is_full(stream->task.connection)) rp_pinned_refuse(&stream->task);
    }
    if (refusal.code != RP_OK) rp_task_abort(&stream->task, refusal.code, refusal.text);
    if (is_over) release_batch(batch);
}

/* Starts one of the open batches; the others stay in order. */
static void start_open(rp_worker *worker, size_t index)
{
    rp_insert_batch *batch = worker->open[index];

    assert(index < worker->open_count && &batch->stream->task == worker->batching); /* W2 */
    for (size_t i = index + 1; i < worker->open_count; i++)
        worker->open[i - 1] = worker->open[i];
    if (--worker->open_count == 0) worker->batching = NULL;
    start(batch->stream, batch);
}

void rp_insert_batches_start(rp_worker *worker)
{
    while (worker->open_count > 0) {
        rp_insert_stream *stream = worker->open[0]->stream;
        start_open(worker, 0);
        if (!stream->task.is_finished && rp_insert_stream_must_wait(stream))
            rp_call_pause(stream->task.call);
    }
}

void rp_insert_batches_make_room(rp_worker *worker, size_t items)
{
    size_t open = 0, bytes = 0;

    for (size_t i = 0; i < worker->open_count; i++) {
        open += worker->open[i]->count;
        bytes += worker->open[i]->bytes;
    }
    if (open + items <= RP_MAX_INSERT_BATCH && bytes < OPEN_BYTES) return;
    while (worker->open_count > 0) start_open(worker, 0);
}

/* Chooses an open batch to start, to make room for another: one without items of the current
 * message, if there is one. */
static size_t find_other(const rp_insert_stream *stream, const rp_worker *worker)
{
    size_t i = 0;

    while (i < worker->open_count && worker->open[i]->message == stream->messages) i++;
    return i < worker->open_count ? i : 0;
}

rp_insert_batch *rp_insert_batch_for(rp_insert_stream *stream, rp_error *err)
{
    rp_worker *worker = rp_task_worker(&stream->task);
    rp_insert_batch *batch = NULL;
    size_t i = 0;

    while (i < worker->open_count && worker->open[i]->served != stream->served) i++;
    if (i < worker->open_count) batch = worker->open[i];
    if (batch != NULL && batch->count == RP_MAX_INSERT_BATCH) {
        start_open(worker, i);
        batch = NULL;
    } else if (batch == NULL && worker->open_count == RP_OPEN_BATCHES) {
        start_open(worker, find_other(stream, worker));
    }
    if (stream->task.is_finished) {
        (void)rp_fail(err, RP_CANCELLED, "the stream is over");
        return NULL;
    }
    if (batch == NULL) {
        batch = new_batch(worker);
        if (batch == NULL) {
            (void)rp_fail_memory(err, sizeof *batch);
            return NULL;
        }
        batch->stream = stream;
        batch->served = rp_served_table_ref(stream->served);
        batch->came_ns = rp_loop_now(worker->loop);
        assert(worker->open_count < RP_OPEN_BATCHES);
        assert(worker->batching == NULL || worker->batching == &stream->task); /* W2 */
        worker->open[worker->open_count++] = batch;
        worker->batching = &stream->task;
    }
    if (reserve_item(batch)) return batch;
    (void)rp_fail_memory(err, RP_MAX_INSERT_BATCH * sizeof(rp_insert));
    return NULL;
}

void rp_insert_batches_withdraw(rp_insert_stream *stream)
{
    rp_worker *worker = rp_task_worker(&stream->task);

    while (stream->parked != NULL) {
        rp_insert_batch *batch = stream->parked;
        unpark(stream, batch);
        batch->stream = NULL;
        if (!rp_op_withdraw(&batch->op, RP_CANCELLED)) continue; /* its post follows */
        if (atomic_load_explicit(&batch->is_progress, memory_order_acquire)) {
            rp_loop_post(worker->loop,
                         &batch->post); /* `progress` is posted and still needs its memory */
            continue;
        }
        forget_pending(batch);
        drop_items(batch, batch->op.done);
        release_batch(batch);
        assert(worker->outstanding > 0); /* V4 */
        worker->outstanding--;
    }
}
