/* SPDX-License-Identifier: Apache-2.0 */
/* InsertStream: receives chunks and items, and confirms the keys of items that were inserted.
 *
 * Items of one table form a batch, which is one operation of that table (insert_batch.h). If
 * the table makes the operation wait, the stream continues with the following items, also for
 * other tables, until max_pending items wait for the table. Then the stream is paused, and flow
 * control stops its peer. A stream with waiting inserts is also paused when all connections
 * together hold half of the limit pinned_bytes, and refused when they hold three quarters of
 * it. Keys are confirmed at the end of the turn, in one message. With a journal, a key is
 * confirmed once its insert is safe.
 *
 * A message with many chunks or items is handled in pieces, in several turns of the loop.
 * Between two pieces the session keeps the message, the call is paused, and no batch is open.
 * The stream is not paused for its tables before the end of the message. So at most one message
 * of a worker is handled in part (deferral.h). Its chunks count as pinned only after its last
 * piece.
 *
 * Invariant I1: message.is_begun is set, between two events, exactly while the session is to
 * deliver the message again. Then the task is deferred. */
#include <assert.h>

#include "server/core/deferral.h"
#include "server/core/pinned.h"
#include "server/rpc/insert_batch.h"
#include "server/rpc/methods.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/reverb_messages.h"

/* Units of work (deferral.h). Items and chunks count little, so that many connections can
 * insert at full speed: a message that is deferred has to be copied. */
enum {
    PARTS_OF_A_UNIT = 4, /* items, chunks and keys to keep */
    SLICES_OF_A_UNIT = 8,
};

static rp_insert_stream *stream_of(rp_task *task)
{
    return (rp_insert_stream *)(void *)task;
}

/* Finds the table of an item. First tries the table of the previous item, then the one that
 * followed it last time. A dropped table is not used, since there may be a new one of that
 * name. */
static rp_status find_table(rp_insert_stream *stream, rp_string name, rp_error *err)
{
    rp_served_table *served = NULL;
    size_t at = stream->at;

    if (rp_served_table_is(stream->served, name)) return RP_OK;
    for (size_t i = 0; i < stream->recent_count && served == NULL; i++) {
        at = at + 1 < stream->recent_count ? at + 1 : 0;
        if (rp_served_table_is(stream->recent[at], name) &&
            !rp_served_table_is_dropped(stream->recent[at]))
            served = stream->recent[at];
    }
    if (served == NULL) {
        served = rp_served_table_find(rp_task_worker(&stream->task)->server, name, err);
        if (served == NULL) return err->code;
        at = stream->recent_count < RP_OPEN_BATCHES ? stream->recent_count++
                                                    : (at + 1) % RP_OPEN_BATCHES;
        rp_served_table_unref(stream->recent[at]);
        stream->recent[at] = served;
    }
    stream->at = at;
    stream->served = served;
    return RP_OK;
}

/* Must not be called while a message is handled. */
static void on_dropped(rp_task *task)
{
    rp_insert_stream *stream = stream_of(task);
    rp_served_table *last = stream->served;
    size_t kept = 0;

    stream->served = NULL;
    stream->at = 0;
    for (size_t i = 0; i < stream->recent_count; i++) {
        rp_served_table *served = stream->recent[i];
        if (rp_served_table_is_dropped(served)) {
            rp_served_table_unref(served);
            continue;
        }
        if (served == last) {
            stream->served = served;
            stream->at = kept;
        }
        stream->recent[kept++] = served;
    }
    for (size_t i = kept; i < stream->recent_count; i++) stream->recent[i] = NULL;
    stream->recent_count = kept;
}

/* Ends the stream because of an error in a request. Counts the reason: the limit of `excess`
 * or, if there is no excess and the error is a limit on size, `size`. */
static void refuse(rp_insert_stream *stream, rp_insert_excess excess, rp_refusal size,
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

    assert((size_t)excess < sizeof reasons / sizeof reasons[0]);
    if (excess == RP_EXCESS_NONE && error->code == RP_NO_RESOURCE)
        why = rp_error_is_memory(error) ? RP_REFUSED_MEMORY : size;
    rp_task_refuse(&stream->task, why, error);
}

static void apply_kept_change(rp_insert_stream *stream)
{
    rp_pinned_keep(rp_task_worker(&stream->task),
                   rp_stream_chunks_take_change(&stream->chunks));
}

static void settle_chunks(rp_insert_stream *stream)
{
    rp_stream_chunks_settle(&stream->chunks);
    apply_kept_change(stream);
}

static bool pins_too_much(rp_insert_stream *stream)
{
    apply_kept_change(stream);
    if (rp_stream_chunks_must_settle(&stream->chunks)) rp_task_touch(&stream->task);
    return rp_pinned_set(&stream->task, &stream->pinned, stream->chunks.unused_bytes);
}

/* Refuses a message of many small chunks, which take much more memory than the message, before
 * all of them are made. `read_bytes` of the message have become chunks. They do not count, as
 * its items may refer to all of its chunks. */
static bool has_too_many_chunks(rp_insert_stream *stream, size_t read_bytes)
{
    size_t limit = rp_task_worker(&stream->task)->limits.stream_pinned_bytes;
    rp_error error;

    if (stream->chunks.unused_bytes <= limit ||
        stream->chunks.unused_bytes - limit <= read_bytes)
        return false;
    (void)rp_fail(&error, RP_NO_RESOURCE,
                  "chunks without an item take %zu bytes, over the limit stream_pinned_bytes, "
                  "%zu, and the %zu bytes of this message that they come from; use longer "
                  "chunks, or send fewer in a message",
                  stream->chunks.unused_bytes, limit, read_bytes);
    rp_task_refuse(&stream->task, RP_REFUSED_STREAM_PINNED, &error);
    return true;
}

/* How far a message has been handled. */
typedef enum step {
    STEP_DONE,  /* all chunks, or all items */
    STEP_LATER, /* a part; the rest follows in a later turn */
    STEP_OVER,  /* the stream has ended */
} step;

/* Counts the work for the parts that were handled since the last call. */
static void count_work(rp_insert_stream *stream)
{
    rp_insert_message *m = &stream->message;

    rp_defer_add_work(rp_task_worker(&stream->task),
                      (m->parts + PARTS_OF_A_UNIT - 1) / PARTS_OF_A_UNIT +
                          m->slices / SLICES_OF_A_UNIT);
    m->parts = m->slices = 0;
}

/* Whether the message may go on in this turn. If not, it is delivered again in a later one. */
static bool may_go_on(rp_insert_stream *stream)
{
    const rp_insert_message *m = &stream->message;

    if (m->parts + m->slices < RP_BLOCK || !m->is_divisible) return true;
    count_work(stream);
    if (rp_defer_may_go_on(&stream->task)) return true;
    rp_call_deliver_again(stream->task.call);
    return false;
}

static step add_chunks(rp_insert_stream *stream, rp_block *block)
{
    rp_insert_message *m = &stream->message;
    const uint8_t *data;
    rp_error error;
    size_t size;

    if (m->request.chunk_count == 0) return STEP_DONE;
    m->is_divisible = block != NULL;
    while (rp_insert_request_next_chunk(&m->reader, &data, &size)) {
        if (rp_insert_parts_add_chunk(rp_task_worker(&stream->task), &stream->chunks,
                                      &stream->template, data, size, block, &error) != RP_OK) {
            refuse(stream, RP_EXCESS_NONE, RP_REFUSED_TENSOR_BYTES, &error);
            return STEP_OVER;
        }
        m->chunk_bytes += size;
        m->parts++;
        if (has_too_many_chunks(stream, m->chunk_bytes)) return STEP_OVER;
        if (!may_go_on(stream)) return STEP_LATER;
    }
    if (m->request.item_count > 0) return STEP_DONE;
    settle_chunks(stream);
    return pins_too_much(stream) ? STEP_OVER : STEP_DONE;
}

/* Adds an item to the open batch of its table. */
static rp_status add_item(rp_insert_stream *stream, const rp_insert_request *request,
                          rp_wire_item *item, rp_error *err)
{
    rp_trajectory *trajectory = NULL;
    rp_insert_batch *batch = NULL;
    rp_status st = rp_insert_parts_trajectory(rp_task_worker(&stream->task), &stream->chunks,
                                              item, &trajectory, err);

    if (st == RP_OK) st = find_table(stream, item->table, err);
    if (st == RP_OK) {
        batch = rp_insert_batch_for(stream, err);
        if (batch == NULL) st = err->code;
    }
    if (batch == NULL) {
        rp_trajectory_unref(trajectory);
        return st;
    }
    assert(batch->served == stream->served && batch->count < batch->capacity);
    batch->begins[batch->count] = batch->message != stream->messages;
    if (batch->message != stream->messages) batch->bytes += request->size;
    batch->bytes += trajectory->item_cost; /* slices take more memory than on the wire */
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

/* Ends the stream because of an item of the message. */
static void refuse_item(rp_insert_stream *stream, const rp_wire_item *item,
                        const rp_error *error)
{
    rp_insert_batches_start(rp_task_worker(&stream->task)); /* items before it are inserted */
    if (error->code == RP_NOT_FOUND || error->code == RP_INTERNAL)
        rp_task_abort(&stream->task, error->code, error->text);
    else
        refuse(stream, item->excess, RP_REFUSED_ITEM_BYTES, error);
}

static step add_items(rp_insert_stream *stream, const rp_block *block)
{
    rp_worker *worker = rp_task_worker(&stream->task);
    rp_insert_message *m = &stream->message;
    rp_wire_item item = {0};
    const uint8_t *data;
    rp_error error = {0};
    size_t size;

    assert(worker->batching == NULL || worker->batching == &stream->task); /* W2 */
    m->is_divisible = block != NULL && m->request.item_count > RP_MAX_INSERT_BATCH;
    while (!stream->task.is_finished && rp_insert_request_next_item(&m->reader, &data, &size)) {
        rp_status st = rp_item_room_read(&worker->item_room, &worker->server->alloc,
                                         (rp_bytes){data, size}, worker->limits.columns,
                                         m->slices_left, &item, &error);
        if (st == RP_OK) {
            m->slices_left -= item.slice_count;
            m->slices += item.slice_count;
            m->parts++;
            st = add_item(stream, &m->request, &item, &error);
        }
        if (st != RP_OK) {
            if (!stream->task.is_finished) refuse_item(stream, &item, &error);
            return STEP_OVER;
        }
        if (!may_go_on(stream)) return STEP_LATER;
    }
    return stream->task.is_finished ? STEP_OVER : STEP_DONE;
}

static void keep_chunks(rp_insert_stream *stream, const rp_insert_request *request)
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

static size_t on_pinned(rp_task *task)
{
    rp_insert_stream *stream = stream_of(task);

    if (!stream->message.is_begun) {
        rp_stream_chunks_update_use(&stream->chunks);
        task->connection->pinned_bytes += stream->chunks.unused_bytes - stream->pinned;
        stream->pinned = stream->chunks.unused_bytes;
    }
    rp_insert_batches_update_held(stream);
    return stream->pinned + stream->parked_bytes;
}

bool rp_insert_stream_must_wait(const rp_insert_stream *stream)
{
    const rp_server_limits *limits = &rp_task_worker(&stream->task)->limits;
    size_t checks = 2 * RP_OPEN_BATCHES; /* checks only the batches that were parked last */

    if (stream->parked_bytes > limits->stream_pinned_bytes) return true;
    if (stream->parked != NULL &&
        (stream->task.connection->parked_bytes > limits->connection_pinned_bytes ||
         rp_pinned_is_short(stream->task.connection)))
        return true;
    if (rp_call_queued_bytes(stream->task.call) >= limits->stream_queued_bytes) return true;
    if (stream->confirmed.count - stream->confirmed.ready >=
        limits->stream_queued_bytes / sizeof(uint64_t) + 1)
        return true; /* the journal is behind */
    /* Checks only tables that the stream waits for, since it continues when one of these
     * batches completes. */
    for (const rp_insert_batch *batch = stream->parked; batch != NULL && checks > 0;
         batch = batch->next, checks--)
        if (atomic_load_explicit(&batch->served->pending_inserts, memory_order_relaxed) >=
            batch->served->max_pending)
            return true;
    return false;
}

/* Refuses a stream that has no waiting inserts, if the other streams of its connection have too
 * many. */
static bool waits_too_much(rp_insert_stream *stream)
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

/* All items of the message have been added. */
static void complete(rp_insert_stream *stream)
{
    const rp_insert_request *request = &stream->message.request;
    rp_task *task = &stream->task;

    if (stream->served != NULL)
        rp_counter_add(
            &rp_table_metrics_loop(stream->served->metrics, rp_task_worker(task)->index)
                 ->inserted_bytes,
            request->size);
    keep_chunks(stream, request);
    stream->message.parts += request->keep_count;
    if (!task->is_finished && !pins_too_much(stream) && rp_insert_stream_must_wait(stream))
        rp_call_pause(task->call);
}

/* Handles the message, or the next piece of it. */
static step insert(rp_insert_stream *stream, rp_block *block)
{
    rp_insert_message *m = &stream->message;
    rp_worker *worker = rp_task_worker(&stream->task);
    step s;

    if (rp_served_table_is_dropped(stream->served)) on_dropped(&stream->task);
    if (!m->has_all_chunks) {
        s = add_chunks(stream, block);
        if (s != STEP_DONE || m->request.item_count == 0) return s;
        m->has_all_chunks = true;
        m->reader = rp_insert_request_parts(&m->request);
        stream->messages++;
        rp_insert_batches_make_room(worker, m->request.item_count);
    }
    s = add_items(stream, block);
    if (s == STEP_DONE) complete(stream);
    rp_item_room_trim(&worker->item_room, &worker->server->alloc);
    return s;
}

/* Reads a new message. False if the stream has ended. */
static bool begin_message(rp_insert_stream *stream, const uint8_t *data, size_t size)
{
    const rp_server_limits *limits = &rp_task_worker(&stream->task)->limits;
    const rp_insert_limits bounds = {limits->chunk_bytes, limits->items, limits->columns,
                                     limits->slices, limits->keys};
    rp_insert_message *m = &stream->message;
    rp_error error;

    *m = (rp_insert_message){.slices_left = limits->slices};
    if (rp_insert_request_read(data, size, &bounds, &m->request, &error) != RP_OK) {
        m->parts = m->request.chunk_count + m->request.item_count + m->request.keep_count;
        refuse(stream, m->request.excess, RP_REFUSED_MESSAGE_BYTES, &error);
    } else if (m->request.chunk_count == 0 && m->request.item_count == 0) {
        rp_task_abort(&stream->task, RP_INVALID, "the request has neither chunks nor items");
    } else if (!waits_too_much(stream)) {
        m->reader = rp_insert_request_parts(&m->request);
        m->is_begun = true;
    }
    return m->is_begun;
}

static void on_message(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    rp_insert_stream *stream = stream_of(task);
    rp_insert_message *m = &stream->message;

    assert(m->is_begun == rp_call_is_again(task->call)); /* I1 */
    if (m->is_begun || begin_message(stream, data, size)) {
        assert(m->request.data == data && m->request.size == size);
        if (insert(stream, block) == STEP_LATER) return;
    }
    m->is_begun = false;
    count_work(stream);
}

static void on_safe(rp_safe_wait *wait);

static void on_open(rp_task *task)
{
    rp_server *server = rp_task_worker(task)->server;

    rp_stream_chunks_init(&stream_of(task)->chunks, &server->alloc,
                          server->hash_seed ^ (uint64_t)(uintptr_t)task);
    task->safe.on_safe = on_safe;
}

static void send_confirmations(rp_insert_stream *stream)
{
    rp_task *task = &stream->task;
    rp_message *reply;

    if (stream->confirmed.ready == 0 || task->is_finished) return;
    if (rp_call_queued_bytes(task->call) >= rp_task_worker(task)->limits.stream_queued_bytes) {
        rp_call_want_room(task->call); /* a slow reader */
        return;
    }
    reply = rp_task_new_message(task);
    if (reply == NULL) return;
    rp_wire_write_insert_response(&reply->bytes, stream->confirmed.keys,
                                  stream->confirmed.ready);
    rp_confirmations_sent(&stream->confirmed, &rp_task_worker(task)->server->alloc);
    rp_task_send(task, reply);
}

static void on_flush(rp_task *task)
{
    rp_insert_stream *stream = stream_of(task);

    if (!task->is_finished && !stream->message.is_begun &&
        rp_stream_chunks_must_settle(&stream->chunks))
        settle_chunks(stream);
    send_confirmations(stream);
    if (stream->has_ended && stream->parked == NULL && stream->confirmed.count == 0)
        rp_task_finish(task, RP_OK, NULL);
}

void rp_insert_stream_continue(rp_insert_stream *stream)
{
    rp_task *task = &stream->task;

    if (task->is_finished) return;
    rp_task_touch(task);
    if (!rp_call_is_paused(task->call)) return;
    if (!stream->message.is_begun && rp_insert_stream_must_wait(stream)) return;
    rp_call_resume(task->call);
    rp_insert_batches_start(rp_task_worker(task)); /* of messages that rp_call_resume() read */
}

/* More inserts are safe: sends their confirmations. */
static void on_safe(rp_safe_wait *wait)
{
    rp_insert_stream *stream =
        stream_of((rp_task *)(void *)((char *)wait - offsetof(rp_task, safe)));
    uint64_t next;

    rp_confirmations_settle(&stream->confirmed, rp_safe_now(rp_insert_safety(stream)));
    next = rp_confirmations_next(&stream->confirmed);
    if (next != 0) rp_safe_wait_begin(&rp_task_worker(&stream->task)->safe_waits, wait, next);
    rp_insert_stream_continue(stream);
}

static void on_turn(rp_task *task)
{
    rp_insert_stream_continue(stream_of(task));
}

static void on_room(rp_task *task)
{
    send_confirmations(stream_of(task));
    rp_insert_stream_continue(stream_of(task));
}

static void on_half_close(rp_task *task)
{
    stream_of(task)->has_ended = true;
    rp_task_touch(task);
}

/* Inserts the items that have arrived, withdraws inserts that still wait, and releases the
 * chunks. It does not leave that to on_close, which may follow much later if the peer does not
 * read. */
static void on_end(rp_task *task)
{
    rp_insert_stream *stream = stream_of(task);
    rp_worker *worker = rp_task_worker(task);

    if (worker->batching == task) rp_insert_batches_start(worker); /* W3 */
    rp_insert_batches_withdraw(stream);
    assert(stream->parked == NULL && stream->parked_bytes == 0); /* W4 */
    rp_stream_chunks_deinit(&stream->chunks);
    apply_kept_change(stream);
    assert(task->connection->pinned_bytes >= stream->pinned);
    task->connection->pinned_bytes -= stream->pinned;
    stream->pinned = 0;
}

static void on_close(rp_task *task)
{
    rp_insert_stream *stream = stream_of(task);
    rp_worker *worker = rp_task_worker(task);

    on_end(task);
    for (size_t i = 0; i < stream->recent_count; i++) rp_served_table_unref(stream->recent[i]);
    rp_confirmations_deinit(&stream->confirmed, &worker->server->alloc);
}

static void on_flush_batches(rp_task *task)
{
    rp_insert_batches_start(rp_task_worker(task));
}

const rp_task_kind rp_insert_stream_kind = {
    .bytes = sizeof(rp_insert_stream),
    .waits_for_room = true,
    .is_moderated = true,
    .on_open = on_open,
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_turn = on_turn,
    .on_room = on_room,
    .on_flush = on_flush,
    .on_flush_batches = on_flush_batches,
    .on_dropped = on_dropped,
    .on_pinned = on_pinned,
    .on_end = on_end,
    .on_close = on_close,
};
