/* SPDX-License-Identifier: Apache-2.0 */
/* InsertStream: chunks and items come in, keys of items that are in go out.
 *
 * Items that go to one table are one batch, one operation of that table. A batch stays open for
 * the messages that were read together with its first, and is started before anything else is
 * done for any call (insert_stream.h). If the table lets it wait, the stream goes on with what
 * follows, for other tables too, until the table has as many waiting as it takes; then the
 * stream is paused, and its peer held up by flow control; so it is when all connections
 * together hold half of the limit pinned_bytes. Only when they hold three quarters of it is a
 * stream whose inserts must wait refused. Keys are confirmed at the end of the turn, all in one
 * message; with a journal only those that are safe, the others when they are. */
#include "server/insert_stream.h"

#include <assert.h>

#include "server/confirmations.h"
#include "server/insert_parts.h"
#include "server/pinned.h"
#include "server/served.h"
#include "table/table.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/reverb_calls.h"

enum {
    MAX_BATCH = RP_BLOCK, /* items in one operation: all are checked before the first is in */
    FIRST_BATCH = 16,     /* items there is room for at first */
    MAX_IDLE_BATCHES = 64,
    OPEN_BYTES = 1 << 20, /* in open batches, before the next message starts them */
};

typedef struct insert_stream {
    rp_task task;
    rp_stream_chunks chunks;
    rp_chunk_mould mould; /* of the last small chunk: the next is likely of the same form */
    rp_served *served;    /* of the last item: recent[at] */
    rp_served *recent[RP_OPEN_BATCHES]; /* tables of the last items, references */
    size_t recent_count, at;
    uint64_t messages; /* with items, so far */
    rp_insert_batch *parked;
    size_t parked_bytes; /* of them and the messages they came in */
    size_t pinned;       /* counted in the connection's pinned_bytes */
    rp_confirmations confirmed;
    bool has_ended; /* the peer has sent all */
} insert_stream;

/* Items on their way into one table. */
struct rp_insert_batch {
    rp_op op;
    rp_post post, progress;
    atomic_size_t in;            /* items, so far, of an operation that waits */
    atomic_uint_fast64_t in_lsn; /* at which they are safe; written before `in` */
    atomic_bool is_progress;     /* that has been posted, and not been read */
    size_t told;                 /* items, of those, that the peer knows of */
    rp_worker *worker;
    insert_stream *stream; /* NULL: its call is gone */
    rp_served *served;     /* a reference while in use */
    rp_insert_batch *prev, *next;
    rp_insert *items;
    size_t count, capacity;
    bool begins[MAX_BATCH]; /* whether an item is the first of its message here */
    uint64_t message;       /* the stream's number of the last item's */
    size_t bytes;           /* of all of its messages and items */
    size_t held;            /* with them and by itself, while it is parked */
    int64_t came_ns;        /* the first */
};

static insert_stream *stream_of(rp_task *task)
{
    return (insert_stream *)(void *)task;
}

/* --- batches ------------------------------------------------------------------------------------ */

static void free_batch(rp_worker *worker, rp_insert_batch *batch)
{
    rp_release(&worker->server->alloc, batch->items, batch->capacity * sizeof *batch->items);
    rp_release(&worker->server->alloc, batch, sizeof *batch);
}

static void release_batch(rp_insert_batch *batch)
{
    rp_worker *worker = batch->worker;

    rp_served_unref(batch->served);
    batch->served = NULL;
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

/* Under the table's lock: so it is posted, and run, before the batch is. */
static void on_batch_progress(rp_op *op)
{
    rp_insert_batch *batch = op->user;

    atomic_store_explicit(&batch->in_lsn, op->lsn, memory_order_relaxed);
    atomic_store_explicit(&batch->in, op->done, memory_order_release);
    if (!atomic_exchange_explicit(&batch->is_progress, true, memory_order_acq_rel))
        rp_loop_post(batch->worker->loop, &batch->progress);
}

static rp_insert_batch *new_batch(rp_worker *worker)
{
    rp_insert_batch *batch = worker->idle_batches;

    if (batch != NULL) {
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

static rp_safety *safety_of(const insert_stream *stream)
{
    return &rp_task_worker(&stream->task)->server->safety;
}

/* Keys of items that are in, to be told to the peer once that is safe. */
static void confirm(insert_stream *stream, const rp_insert *items, size_t count, uint64_t lsn)
{
    rp_task *task = &stream->task;
    rp_worker *worker = rp_task_worker(task);
    uint64_t next;

    if (task->is_finished) return; /* nobody is there to be told */
    if (rp_confirmations_add(&stream->confirmed, &worker->server->alloc, items, count, lsn,
                             rp_safe_now(safety_of(stream))) != RP_OK) {
        rp_task_abort(task, RP_NO_RESOURCE, "out of memory for confirmations");
        return;
    }
    next = rp_confirmations_next(&stream->confirmed);
    if (next != 0 && task->safe.lsn == 0)
        rp_safe_wait_begin(&worker->safe_waits, &task->safe, next);
    rp_task_touch(task);
}

/* The first `done` items are in: tells the peer of those it does not know of, and counts them.
 */
static void tell(insert_stream *stream, rp_insert_batch *batch, size_t done, uint64_t lsn)
{
    rp_worker *worker = batch->worker;
    rp_table_counters *counters = rp_table_metrics_loop(batch->served->metrics, worker->index);
    size_t told = batch->told, more = done - told;

    if (more == 0) return;
    batch->told = done;
    rp_counter_add(&counters->inserted_items, more);
    rp_histogram_record(&counters->insert_ns, rp_now_ns() - batch->came_ns, more);
    confirm(stream, batch->items + told, more,
            lsn); /* may end the stream, and free the batch */
}

/* An operation is over. */
static void settle(insert_stream *stream, rp_insert_batch *batch)
{
    drop_items(batch, batch->op.done);
    tell(stream, batch, batch->op.done, batch->op.lsn);
    if (batch->op.status != RP_OK)
        rp_task_abort(&stream->task, batch->op.status, batch->op.error.text);
}

static void unpark(insert_stream *stream, rp_insert_batch *batch)
{
    *(batch->prev != NULL ? &batch->prev->next : &stream->parked) = batch->next;
    if (batch->next != NULL) batch->next->prev = batch->prev;
    stream->parked_bytes -= batch->held;
    stream->task.connection->parked_bytes -= batch->held;
    rp_pinned_add(batch->worker, (size_t)0 - batch->held);
}

static void forget_pending(rp_insert_batch *batch)
{
    atomic_fetch_sub_explicit(&batch->served->pending_inserts, batch->count,
                              memory_order_relaxed);
}

static void go_on(insert_stream *stream);

/* Some of a batch that waits is in. */
static void on_progress_posted(rp_post *post)
{
    rp_insert_batch *batch =
        (rp_insert_batch *)((char *)post - offsetof(rp_insert_batch, progress));

    size_t in;

    /* An exchange: what is stored after it is posted again, what was before is read here. */
    (void)atomic_exchange_explicit(&batch->is_progress, false, memory_order_acq_rel);
    if (batch->stream == NULL) return;
    in = atomic_load_explicit(&batch->in, memory_order_acquire); /* before its number */
    tell(batch->stream, batch, in, atomic_load_explicit(&batch->in_lsn, memory_order_relaxed));
}

/* A batch that had to wait has come home. */
static void on_batch_posted(rp_post *post)
{
    rp_insert_batch *batch =
        (rp_insert_batch *)((char *)post - offsetof(rp_insert_batch, post));
    rp_worker *worker = batch->worker;
    insert_stream *stream = batch->stream;

    forget_pending(batch);
    if (stream == NULL) {
        drop_items(batch, batch->op.done);
    } else {
        unpark(stream, batch);
        settle(stream, batch);
        go_on(stream);
    }
    release_batch(batch);
    rp_worker_returned(worker);
}

/* Starts the operation. True if it is over already. */
static bool run(rp_insert_batch *batch)
{
    batch->op = (rp_op){
        .items = batch->items,
        .count = batch->count,
        .until_ns = RP_FOREVER,
        .on_done = on_batch_done,
        .on_progress = on_batch_progress,
        .user = batch,
    };
    batch->told = 0;
    atomic_fetch_add_explicit(&batch->served->pending_inserts, batch->count,
                              memory_order_relaxed);
    if (!rp_table_start_insert(batch->served->table, &batch->op)) return false;
    forget_pending(batch);
    return true;
}

static void park(insert_stream *stream, rp_insert_batch *batch)
{
    batch->worker->outstanding++;
    batch->prev = NULL;
    batch->next = stream->parked;
    if (batch->next != NULL) batch->next->prev = batch;
    stream->parked = batch;
    batch->held = batch->bytes + sizeof *batch + batch->capacity * sizeof *batch->items;
    stream->parked_bytes += batch->held;
    stream->task.connection->parked_bytes += batch->held;
    rp_pinned_add(batch->worker, batch->held);
}

/* A table that refuses an item has taken none of its operation. The messages before that of the
 * item have nothing to do with it: leaves them in the batch. False if there are none. */
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

/* Starts a batch, and takes it. */
static void start(insert_stream *stream, rp_insert_batch *batch)
{
    bool is_over = run(batch);
    rp_error refusal = {.code = RP_OK};

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

    for (size_t i = index + 1; i < worker->open_count; i++)
        worker->open[i - 1] = worker->open[i];
    worker->open_count--;
    start(batch->stream, batch);
}

static bool must_wait(const insert_stream *stream);

void rp_insert_start_open(rp_worker *worker)
{
    while (worker->open_count > 0) {
        insert_stream *stream = worker->open[0]->stream;
        start_open(worker, 0);
        if (!stream->task.is_finished && must_wait(stream)) rp_call_pause(stream->task.call);
    }
}

void rp_insert_make_way(rp_worker *worker, const rp_task *task)
{
    if (worker->open_count > 0 && &worker->open[0]->stream->task != task)
        rp_insert_start_open(worker);
}

/* --- tables and refusals ----------------------------------------------------------------------- */

/* The table of an item: mostly that of the item before, or the one that came after it the last
 * time. One that was dropped may have been made anew. */
static rp_status find_table(insert_stream *stream, rp_string name, rp_error *err)
{
    rp_served *served = NULL;
    size_t at = stream->at;

    if (rp_served_is(stream->served, name)) return RP_OK;
    for (size_t i = 0; i < stream->recent_count && served == NULL; i++) {
        at = at + 1 < stream->recent_count ? at + 1 : 0;
        if (rp_served_is(stream->recent[at], name) &&
            !rp_table_is_dropped(stream->recent[at]->table))
            served = stream->recent[at];
    }
    if (served == NULL) {
        served = rp_served_find(rp_task_worker(&stream->task)->server, name, err);
        if (served == NULL) return err->code;
        at = stream->recent_count < RP_OPEN_BATCHES ? stream->recent_count++
                                                    : (at + 1) % RP_OPEN_BATCHES;
        rp_served_unref(stream->recent[at]);
        stream->recent[at] = served;
    }
    stream->at = at;
    stream->served = served;
    return RP_OK;
}

/* Ends the stream for an error in what was sent, counted by the limit that it is over, if any:
 * that of `excess`, or else `size`. */
static void refuse(insert_stream *stream, rp_insert_excess excess, rp_refusal size,
                   const rp_error *error)
{
    static const rp_refusal reasons[] = {
        [RP_EXCESS_NONE] = RP_REFUSED_DECODE,
        [RP_EXCESS_CHUNK_BYTES] = RP_REFUSED_CHUNK_BYTES,
        [RP_EXCESS_ITEMS] = RP_REFUSED_ITEMS,
        [RP_EXCESS_COLUMNS] = RP_REFUSED_COLUMNS,
        [RP_EXCESS_SLICES] = RP_REFUSED_SLICES,
        [RP_EXCESS_CHUNKS] = RP_REFUSED_CHUNKS,
        [RP_EXCESS_KEYS] = RP_REFUSED_KEYS,
    };
    rp_refusal why = reasons[excess];

    if (excess == RP_EXCESS_NONE && error->code == RP_NO_RESOURCE)
        why = rp_error_is_memory(error) ? RP_REFUSED_MEMORY : size;
    rp_task_refuse(&stream->task, why, error);
}

/* --- messages ------------------------------------------------------------------------------------------ */

static bool pins_too_much(insert_stream *stream)
{
    return rp_pinned_set(&stream->task, &stream->pinned, stream->chunks.unused_bytes);
}

static bool add_chunks(insert_stream *stream, const rp_insert_request *request, rp_block *block)
{
    rp_pb_reader reader = rp_insert_request_parts(request);
    const uint8_t *data;
    rp_error error;
    size_t size;

    if (request->chunk_count == 0) return true;
    while (rp_insert_request_next_chunk(&reader, &data, &size))
        if (rp_insert_parts_add_chunk(rp_task_worker(&stream->task), &stream->chunks,
                                      &stream->mould, data, size, block, &error) != RP_OK) {
            refuse(stream, RP_EXCESS_NONE, RP_REFUSED_TENSOR_BYTES, &error);
            return false;
        }
    return request->item_count > 0 || !pins_too_much(stream);
}

/* Starts the open batches if a message of so many items would not find room in any one of them:
 * it is not torn apart, as a table may refuse it as a whole. Nor do they have more items
 * together than one of them may, unless a single message has: those that were read first are
 * still in the cache. Nor do they have many bytes: if they have to wait, the stream is to be
 * paused first. */
static void make_room(rp_worker *worker, size_t items)
{
    size_t open = 0, bytes = 0;

    for (size_t i = 0; i < worker->open_count; i++) {
        open += worker->open[i]->count;
        bytes += worker->open[i]->bytes;
    }
    if (open + items <= MAX_BATCH && bytes < OPEN_BYTES) return;
    while (worker->open_count > 0) start_open(worker, 0);
}

/* An open batch to give way to another: one that the message that is being read is not in, if
 * there is one. */
static size_t find_other(const insert_stream *stream, const rp_worker *worker)
{
    size_t i = 0;

    while (i < worker->open_count && worker->open[i]->message == stream->messages) i++;
    return i < worker->open_count ? i : 0;
}

/* The open batch of the stream's table, with room for an item; NULL with `*err` filled in, or
 * with the stream over. */
static rp_insert_batch *batch_for(insert_stream *stream, rp_error *err)
{
    rp_worker *worker = rp_task_worker(&stream->task);
    rp_insert_batch *batch = NULL;
    size_t i = 0;

    while (i < worker->open_count && worker->open[i]->served != stream->served) i++;
    if (i < worker->open_count) batch = worker->open[i];
    if (batch != NULL && batch->count == MAX_BATCH) {
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
        batch->served = rp_served_ref(stream->served);
        batch->came_ns = rp_loop_now(worker->loop);
        worker->open[worker->open_count++] = batch;
    }
    if (reserve_item(batch)) return batch;
    (void)rp_fail_memory(err, MAX_BATCH * sizeof(rp_insert));
    return NULL;
}

/* Adds an item to the open batch of its table. */
static rp_status add_item(insert_stream *stream, const rp_insert_request *request,
                          rp_wire_item *item, rp_error *err)
{
    rp_trajectory *trajectory = NULL;
    rp_insert_batch *batch = NULL;
    rp_status st = rp_insert_parts_trajectory(rp_task_worker(&stream->task), &stream->chunks,
                                              item, &trajectory, err);

    if (st == RP_OK) st = find_table(stream, item->table, err);
    if (st == RP_OK) {
        batch = batch_for(stream, err);
        if (batch == NULL) st = err->code;
    }
    if (batch == NULL) {
        rp_trajectory_unref(trajectory);
        return st;
    }
    batch->begins[batch->count] = batch->message != stream->messages;
    if (batch->message != stream->messages) batch->bytes += request->size;
    batch->bytes += trajectory->item_cost; /* slices take more than they do on the wire */
    batch->message = stream->messages;
    batch->items[batch->count++] = (rp_insert){
        .key = item->key,
        .priority = item->priority,
        .trajectory = trajectory,
        .times_sampled = item->times_sampled,
        .flags = RP_INSERT_TAKE,
    };
    return RP_OK;
}

static bool add_items(insert_stream *stream, const rp_insert_request *request)
{
    rp_worker *worker = rp_task_worker(&stream->task);
    rp_pb_reader reader = rp_insert_request_parts(request);
    size_t slices_left = worker->limits.slices, size;
    rp_wire_item item = {0};
    rp_status st = RP_OK;
    const uint8_t *data;
    rp_error error = {0};

    assert(worker->open_count == 0 || worker->open[0]->stream == stream);
    stream->messages++;
    make_room(worker, request->item_count);
    while (st == RP_OK && !stream->task.is_finished &&
           rp_insert_request_next_item(&reader, &data, &size)) {
        st = rp_item_room_read(&worker->item_room, &worker->server->alloc, data, size,
                               worker->limits.columns, slices_left, &item, &error);
        if (st != RP_OK) break;
        slices_left -= item.slice_count;
        st = add_item(stream, request, &item, &error);
    }
    if (st == RP_OK || stream->task.is_finished) return !stream->task.is_finished;
    rp_insert_start_open(worker); /* also what came before a bad item */
    if (error.code == RP_NOT_FOUND || error.code == RP_INTERNAL)
        rp_task_abort(&stream->task, error.code, error.text);
    else
        refuse(stream, item.excess, RP_REFUSED_ITEM_BYTES, &error);
    return false;
}

static void keep_chunks(insert_stream *stream, const rp_insert_request *request)
{
    rp_worker *worker = rp_task_worker(&stream->task);
    rp_item_room *room = &worker->item_room;
    size_t before = stream->chunks.count;

    if (rp_item_room_keys(room, &worker->server->alloc, request->keep_count) != RP_OK) {
        rp_task_abort(&stream->task, RP_NO_RESOURCE, "out of memory for keys to keep");
        return;
    }
    if (request->keep_count > 0) rp_insert_request_keep(request, room->keys);
    if (rp_stream_chunks_keep(&stream->chunks, room->keys, request->keep_count)) return;
    rp_error error;
    (void)rp_fail(&error, RP_PRECONDITION,
                  "keep_chunk_keys has %zu keys, but not all of them are among the %zu chunks "
                  "of this stream, once each",
                  request->keep_count, before);
    rp_task_refuse(&stream->task, RP_REFUSED_DECODE, &error);
}

/* Whether the stream must wait before it is read from again. */
static bool must_wait(const insert_stream *stream)
{
    const rp_server_limits *limits = &rp_task_worker(&stream->task)->limits;
    size_t looks = 2 * RP_OPEN_BATCHES; /* at what was parked last */

    if (stream->parked_bytes > limits->stream_pinned_bytes) return true;
    if (stream->parked != NULL &&
        (stream->task.connection->parked_bytes > limits->connection_pinned_bytes ||
         rp_pinned_is_short(stream->task.connection)))
        return true;
    if (rp_call_queued_bytes(stream->task.call) >= limits->stream_queued_bytes) return true;
    if (stream->confirmed.count - stream->confirmed.ready >=
        limits->stream_queued_bytes / sizeof(uint64_t) + 1)
        return true; /* the journal is behind */
    /* Tables that it waits for itself: when one of them moves, it is told. */
    for (const rp_insert_batch *batch = stream->parked; batch != NULL && looks > 0;
         batch = batch->next, looks--)
        if (atomic_load_explicit(&batch->served->pending_inserts, memory_order_relaxed) >=
            batch->served->max_pending)
            return true;
    return false;
}

/* Streams that wait are paused; so many new ones that wait too are refused. */
static bool waits_too_much(insert_stream *stream)
{
    rp_connection *c = stream->task.connection;
    size_t limit = c->worker->limits.connection_pinned_bytes;
    rp_error error;

    if (c->parked_bytes <= limit || stream->parked != NULL) return false;
    (void)rp_fail(&error, RP_NO_RESOURCE,
                  "%zu bytes of inserts wait for their tables on one connection, over %zu",
                  c->parked_bytes, limit);
    rp_task_refuse(&stream->task, RP_REFUSED_CONNECTION_PINNED, &error);
    return true;
}

static void on_message(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    insert_stream *stream = stream_of(task);
    const rp_server_limits *limits = &rp_task_worker(task)->limits;
    const rp_insert_limits bounds = {limits->chunk_bytes, limits->items, limits->columns,
                                     limits->slices, limits->keys};
    rp_insert_request request;
    rp_error error;

    if (rp_insert_request_read(data, size, &bounds, &request, &error) != RP_OK) {
        refuse(stream, request.excess, RP_REFUSED_MESSAGE_BYTES, &error);
        return;
    }
    if (request.chunk_count == 0 && request.item_count == 0) {
        rp_task_abort(task, RP_INVALID, "the request has neither chunks nor items");
        return;
    }
    if (waits_too_much(stream) || !add_chunks(stream, &request, block)) return;
    if (request.item_count == 0) return;
    if (add_items(stream, &request)) {
        if (stream->served != NULL)
            rp_counter_add(
                &rp_table_metrics_loop(stream->served->metrics, rp_task_worker(task)->index)
                     ->inserted_bytes,
                size);
        keep_chunks(stream, &request);
        if (!task->is_finished && !pins_too_much(stream) && must_wait(stream))
            rp_call_pause(task->call);
    }
    rp_item_room_trim(&rp_task_worker(task)->item_room, &rp_task_worker(task)->server->alloc);
}

/* --- the stream ------------------------------------------------------------------------------------------ */

static void on_safe(rp_safe_wait *wait);

static void on_open(rp_task *task)
{
    rp_server *server = rp_task_worker(task)->server;

    rp_stream_chunks_init(&stream_of(task)->chunks, &server->alloc,
                          server->hash_seed ^ (uint64_t)(uintptr_t)task);
    task->safe.on_safe = on_safe;
}

static void send_confirmations(insert_stream *stream)
{
    rp_task *task = &stream->task;
    rp_reply *reply;

    if (stream->confirmed.ready == 0 || task->is_finished) return;
    if (rp_call_queued_bytes(task->call) >= rp_task_worker(task)->limits.stream_queued_bytes) {
        rp_call_want_room(task->call); /* a slow reader: the stream waits as well */
        return;
    }
    reply = rp_task_reply(task);
    if (reply == NULL) return;
    rp_wire_write_insert_response(&reply->bytes, stream->confirmed.keys,
                                  stream->confirmed.ready);
    rp_confirmations_sent(&stream->confirmed);
    rp_task_send(task, reply);
}

static void on_flush(rp_task *task)
{
    insert_stream *stream = stream_of(task);

    send_confirmations(stream);
    if (stream->has_ended && stream->parked == NULL && stream->confirmed.count == 0)
        rp_task_finish(task, RP_OK, NULL);
}

/* Something has become possible: reads on, if the stream had to wait. */
static void go_on(insert_stream *stream)
{
    rp_task *task = &stream->task;

    if (task->is_finished) return;
    rp_task_touch(task);
    if (!rp_call_is_paused(task->call) || must_wait(stream)) return;
    rp_call_resume(task->call);
    rp_insert_start_open(rp_task_worker(task)); /* what had come meanwhile */
}

/* Some of what waits to be confirmed may be. */
static void on_safe(rp_safe_wait *wait)
{
    insert_stream *stream =
        stream_of((rp_task *)(void *)((char *)wait - offsetof(rp_task, safe)));
    uint64_t next;

    rp_confirmations_settle(&stream->confirmed, rp_safe_now(safety_of(stream)));
    next = rp_confirmations_next(&stream->confirmed);
    if (next != 0) rp_safe_wait_begin(&rp_task_worker(&stream->task)->safe_waits, wait, next);
    go_on(stream);
}

static void on_room(rp_task *task)
{
    send_confirmations(stream_of(task));
    go_on(stream_of(task));
}

static void on_half_close(rp_task *task)
{
    stream_of(task)->has_ended = true;
    rp_task_touch(task);
}

/* What came is inserted; what still waits is taken back: nobody was told that it is in. */
static void on_end(rp_task *task)
{
    insert_stream *stream = stream_of(task);
    rp_worker *worker = rp_task_worker(task);

    if (worker->open_count > 0 && worker->open[0]->stream == stream)
        rp_insert_start_open(worker);
    while (stream->parked != NULL) {
        rp_insert_batch *batch = stream->parked;
        unpark(stream, batch);
        batch->stream = NULL;
        if (!rp_op_withdraw(&batch->op, RP_CANCELLED)) continue; /* it will be posted */
        if (atomic_load_explicit(&batch->is_progress, memory_order_acquire)) {
            rp_loop_post(worker->loop, &batch->post); /* its memory is still needed */
            continue;
        }
        forget_pending(batch);
        drop_items(batch, batch->op.done);
        release_batch(batch);
        worker->outstanding--;
    }
}

static void on_close(rp_task *task)
{
    insert_stream *stream = stream_of(task);
    rp_worker *worker = rp_task_worker(task);

    on_end(task);
    task->connection->pinned_bytes -= stream->pinned;
    rp_pinned_add(worker, (size_t)0 - stream->pinned);
    rp_stream_chunks_deinit(&stream->chunks);
    for (size_t i = 0; i < stream->recent_count; i++) rp_served_unref(stream->recent[i]);
    rp_confirmations_deinit(&stream->confirmed, &worker->server->alloc);
}

const rp_task_kind rp_insert_stream_kind = {
    .bytes = sizeof(insert_stream),
    .on_open = on_open,
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_room = on_room,
    .on_flush = on_flush,
    .on_end = on_end,
    .on_close = on_close,
};
