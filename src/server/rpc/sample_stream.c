/* SPDX-License-Identifier: Apache-2.0 */
/* SampleStream and SampleShared: receive requests, send samples.
 *
 * Requests are served one after the other: the stream is paused while one is served. The
 * samples of a request are fetched from the table in several operations of about FETCH_BYTES
 * each. Nothing is fetched while responses wait for the reader, so that no sample is drawn for
 * a peer that does not read. Items are counted in the budget of queued bytes before they are
 * drawn. If there is no room for it, a fetch ends without samples, since many streams may wait
 * for the same item. The fetch is repeated when there may be room.
 *
 * Fetching and writing count as work of a turn of the loop (deferral.h), in proportion to the
 * samples, their slices and their bytes. When the turn has done enough, streams go on in the
 * next turns, one after the other. So many fast readers do not delay the calls of others. The
 * first response to a request has the rights of a small request.
 *
 * Clients can work with the first samples while they receive the next ones. Clients that send
 * the next request only after all samples of the last, as DeepMind's do, would wait for a large
 * message each time. So the first response to a long request is small, and each following one
 * may have twice as many bytes.
 *
 * Under a lease, chunks in the shared arena are not sent: the lease holds the trajectory, and
 * the response has the offsets of the chunks. If the lease may hold no more, the chunks are
 * sent. So a client that releases nothing gets slower, but never stops.
 *
 * Invariants:
 *   S1  a stream has at most one fetch, which waits in the table or has arrived;
 *   S2  the samples of a fetch up to `written` have been written; given_bytes of their bytes
 *       were returned to `drawn`;
 *   S3  a fetch that waits in the table is counted in worker->outstanding. */
#include <assert.h>
#include <stdio.h>

#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "server/core/connection_room.h"
#include "server/core/deferral.h"
#include "server/core/served_table.h"
#include "server/core/worker.h"
#include "server/rpc/methods.h"
#include "server/rpc/sample_fetch.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/reverb_messages.h"
#include "wire/sample_response.h"

enum {
    FIRST_FETCH = 64,      /* samples of a fetch, while their size is not known */
    FETCH_BYTES = 1 << 20, /* bytes of chunks in a fetch, about */
    SHARED_FETCH_BYTES = 16 << 20,
    RESPONSE_BYTES = 2 << 20, /* bytes of chunks in one message; one chunk more at most */
    COPIED_BYTES = 192 << 10, /* bytes that are copied into one message */
    LONG_REQUEST = 128,       /* a request for more samples than this is long */
    FIRST_BYTES = 2 << 10,    /* both limits for the first message of a long request */
    TRAJECTORIES_AHEAD = 32,  /* samples */
    CHUNKS_AHEAD = 16,
    BYTES_AHEAD = 6,
    PREFETCH_BYTES = 1024,
    SAMPLE_WORK = 4, /* units of work of a sample, besides its bytes: deferral.h */
    UNIT_SLICES = 2, /* slices that count as one unit more */
};

static const char timed_out[] =
    "Rate Limiter: Timeout exceeded before the right to insert was acquired.";

struct rp_sample_stream {
    rp_task task;
    rp_served_table *served; /* table of the last request; a reference */
    int64_t remaining;       /* samples of the request that have not been fetched */
    int64_t timeout_ns;      /* timeout of each fetch; -1: none */
    size_t next_fetch;
    size_t lacked_bytes;      /* bytes for which the last fetch had no room */
    size_t message_bytes;     /* bound of the next response, which one sample may pass */
    rp_sample_fetch *fetch;   /* the fetch that waits in the table, or NULL */
    rp_sample_fetch *arrived; /* the fetch with samples that have not been written, or NULL */
    bool is_pumping;
    bool is_new;      /* the first response to the request has not been made */
    bool has_sampled; /* until it has, it waits with a small fetch, as many streams may wait */
    rp_lease *lease;  /* of SampleShared; a reference */
    rp_lease_call *lease_call;
};

static rp_sample_stream *stream_of(rp_task *task)
{
    return (rp_sample_stream *)(void *)task;
}

static void on_fetch_posted(rp_post *post);
static void on_fetch_due(rp_timer *timer);

static void on_fetch_done(rp_op *op)
{
    rp_sample_fetch *fetch = op->user;

    rp_loop_post(fetch->worker->loop, &fetch->post);
}

/* The responses that the samples of a fetch are written to. */
typedef struct responses {
    rp_sample_stream *stream;
    rp_message *reply;      /* NULL: none begun */
    size_t bytes;           /* bytes of chunks in the reply */
    size_t work;            /* units of work for its samples */
    rp_sample_shared arena; /* base NULL: there is none */
} responses;

static bool end_response(responses *to)
{
    rp_task *task = &to->stream->task;
    rp_message *reply = to->reply;

    if (reply != NULL) {
        rp_defer_add_work(rp_task_worker(task), to->work);
        to->stream->is_new = false;
        if (to->stream->message_bytes < RESPONSE_BYTES) to->stream->message_bytes *= 2;
        rp_task_send(task, reply);
    }
    to->reply = NULL;
    to->bytes = to->work = 0;
    return !task->is_finished;
}

/* Whether the stream may make another response in this turn of the loop. If not, it has been
 * deferred: on_turn. */
static bool may_work(rp_sample_stream *stream)
{
    return rp_defer_may_begin(&stream->task, stream->is_new ? 0 : SIZE_MAX);
}

/* Bytes of a chunk that are sent; 0 if the client reads the chunk in the arena. */
static size_t sent_bytes(const rp_chunk *chunk, const rp_sample_shared *shared)
{
    return rp_sample_is_shared(shared, chunk->wire, chunk->wire_bytes) ? 0 : chunk->wire_bytes;
}

static bool is_borrowed(const rp_trajectory *trajectory, const rp_sample_shared *shared)
{
    for (size_t i = 0; i < trajectory->chunk_count; i++)
        if (sent_bytes(trajectory->chunks[i], shared) >= RP_MESSAGE_COPY_BYTES) return true;
    return false;
}

/* Memory that a hold keeps: the chunks and the trajectory, which may have many slices. */
static size_t kept_bytes(const rp_trajectory *trajectory)
{
    return trajectory->bytes + rp_trajectory_slice_count(trajectory) * sizeof(rp_chunk_slice);
}

/* Adds a hold on the sample to the lease, if some of its chunks are in the arena. False: all
 * chunks have to be sent. */
static bool hold(responses *to, const rp_sample *sample)
{
    rp_worker *worker = rp_task_worker(&to->stream->task);
    const rp_trajectory *trajectory = sample->trajectory;
    bool is_shared = false;

    if (to->stream->lease == NULL) return false;
    for (size_t i = 0; i < trajectory->chunk_count; i++)
        is_shared |= sent_bytes(trajectory->chunks[i], &to->arena) == 0;
    if (!is_shared) return false;
    to->arena.hold =
        rp_lease_hold(to->stream->lease, to->stream->lease_call, sample->trajectory,
                      kept_bytes(trajectory), worker->limits.shared_held_bytes);
    rp_counter_add(to->arena.hold != 0 ? &worker->metrics->shared_items
                                       : &worker->metrics->shared_refused_items,
                   1);
    return to->arena.hold != 0;
}

/* Whether a response has enough bytes of chunks, or enough copied bytes, which should stay in
 * the cache. */
static bool is_full(const responses *to)
{
    size_t most = to->stream->message_bytes,
           copied = to->reply != NULL ? to->reply->bytes.size : 0;

    return to->bytes >= most || copied >= (most < COPIED_BYTES ? most : COPIED_BYTES);
}

/* Writes one sample: one entry, or several if its chunks fill more than one response. */
static bool write_sample(responses *to, rp_sample *sample, const rp_served_table *served)
{
    rp_task *task = &to->stream->task;
    const rp_trajectory *trajectory = sample->trajectory;
    const rp_sample_shared *shared = hold(to, sample) ? &to->arena : NULL;
    bool holds = is_borrowed(trajectory, shared);
    size_t first = 0;

    to->work += SAMPLE_WORK + rp_trajectory_slice_count(trajectory) / UNIT_SLICES;
    while (first < trajectory->chunk_count) {
        size_t count = 0;
        if (is_full(to) && !end_response(to)) return false;
        if (to->reply == NULL) to->reply = rp_task_new_message(task);
        if (to->reply == NULL) return false;
        while (first + count < trajectory->chunk_count && to->bytes < RESPONSE_BYTES)
            to->bytes += sent_bytes(trajectory->chunks[first + count++], shared);
        if (!rp_sample_entry_append(to->reply, sample, served->name, served->name_size, first,
                                    count, shared))
            break;
        if (holds) {
            rp_trajectory *held = rp_trajectory_ref(sample->trajectory);
            if (!rp_message_hold(to->reply, held)) {
                rp_trajectory_unref(held);
                break;
            }
        }
        first += count;
    }
    if (first == trajectory->chunk_count) return true;
    rp_message_release(&rp_task_worker(task)->replies, to->reply);
    to->reply = NULL;
    rp_task_abort(task, RP_NO_RESOURCE, "out of memory for a response");
    return false;
}

/* Samples are scattered in memory, so their cache lines are prefetched: first the pointer to a
 * chunk's bytes, and some samples later the bytes. */
static void prefetch_trajectory(const rp_sample_fetch *fetch, size_t at)
{
    if (at < fetch->op.done) __builtin_prefetch(fetch->samples[at].trajectory->chunks);
}

static void prefetch_chunk(const rp_sample_fetch *fetch, size_t at)
{
    if (at < fetch->op.done) __builtin_prefetch(fetch->samples[at].trajectory->chunks[0]);
}

static void prefetch_bytes(const rp_sample_fetch *fetch, size_t at)
{
    const rp_chunk *chunk;
    uintptr_t line, end;

    if (at >= fetch->op.done) return;
    chunk = fetch->samples[at].trajectory->chunks[0];
    if (chunk->wire_bytes >= RP_MESSAGE_COPY_BYTES) return; /* it will not be copied */
    line = (uintptr_t)chunk->wire & ~(uintptr_t)(RP_CACHE_LINE - 1);
    end = (uintptr_t)chunk->wire + chunk->wire_bytes;
    if (end > line + PREFETCH_BYTES) end = line + PREFETCH_BYTES;
    for (; line < end; line += RP_CACHE_LINE) __builtin_prefetch((const void *)line);
}

static rp_sample_shared arena_of(const rp_sample_stream *stream)
{
    const rp_server *server = rp_task_worker(&stream->task)->server;
    rp_sample_shared arena = {.min_bytes = RP_SHARED_MIN_BYTES};

    if (stream->lease != NULL) arena.base = rp_shared_arena_base(server->arena, &arena.bytes);
    return arena;
}

/* Estimates the bytes that a sample of the table adds, at least the bytes for which the last
 * fetch had no room. Under a lease chunks are not sent. */
static size_t expected_bytes(const rp_sample_stream *stream)
{
    size_t bytes = atomic_load_explicit(&stream->served->sample_bytes, memory_order_relaxed);

    if (stream->lease != NULL || bytes == 0) bytes = RP_QUEUE_FLOOR_BYTES;
    return bytes < stream->lacked_bytes ? stream->lacked_bytes : bytes;
}

static bool has_room(const rp_sample_stream *stream, size_t bytes)
{
    return rp_connection_may_queue(stream->task.connection, stream->task.call, bytes);
}

/* Writes samples of a fetch. False if some are left: there was no room, or the stream has been
 * deferred. */
static bool write_samples(rp_sample_stream *stream, rp_sample_fetch *fetch)
{
    responses to = {.stream = stream, .arena = arena_of(stream)};
    size_t count = fetch->op.done, first = fetch->written, i;
    rp_served_table *served = fetch->served;
    rp_table_counters *counters = rp_table_metrics_loop(served->metrics, fetch->worker->index);

    assert(first <= count && count <= fetch->capacity); /* S2 */
    for (i = 0; i < TRAJECTORIES_AHEAD; i++) prefetch_trajectory(fetch, first + i);
    for (i = 0; i < CHUNKS_AHEAD; i++) prefetch_chunk(fetch, first + i);
    for (i = 0; i < BYTES_AHEAD; i++) prefetch_bytes(fetch, first + i);
    for (i = first; i < count; i++) {
        prefetch_trajectory(fetch, i + TRAJECTORIES_AHEAD);
        prefetch_chunk(fetch, i + CHUNKS_AHEAD);
        prefetch_bytes(fetch, i + BYTES_AHEAD);
        if (to.reply == NULL && !(has_room(stream, 0) && may_work(stream))) break;
        fetch->written_bytes += fetch->samples[i].trajectory->bytes;
        if (!write_sample(&to, &fetch->samples[i], served)) return true;
        fetch->written = i + 1;
        if (is_full(&to) && !end_response(&to)) return true;
    }
    (void)end_response(&to);
    if (fetch->written > 0)
        atomic_store_explicit(&served->sample_bytes, fetch->written_bytes / fetch->written + 1,
                              memory_order_relaxed);
    if (i < count) return false;
    rp_counter_add(&counters->sampled_items, count);
    rp_counter_add(&counters->sampled_bytes, fetch->written_bytes);
    return true;
}

/* Returns to `drawn` the bytes of samples that have been written, since the responses count
 * them from now on. */
static void give_written(rp_sample_fetch *fetch)
{
    size_t bytes = fetch->written_bytes - fetch->given_bytes;

    assert(fetch->given_bytes <= fetch->written_bytes); /* S2 */
    rp_connection_count(fetch->stream->task.connection);
    if (bytes > fetch->op.held_bytes) bytes = fetch->op.held_bytes;
    rp_drawn_give(fetch->drawn, bytes);
    fetch->op.held_bytes -= bytes;
    fetch->given_bytes += bytes;
}

/* Writes samples that have arrived. False if some are left. */
static bool write_arrived(rp_sample_stream *stream)
{
    rp_sample_fetch *fetch = stream->arrived;

    if (fetch == NULL) return true;
    if (!stream->task.is_finished && !write_samples(stream, fetch)) {
        give_written(fetch);
        return false;
    }
    stream->arrived = NULL;
    rp_connection_count(
        stream->task.connection); /* before rp_sample_fetch_release() returns the drawn bytes */
    rp_samples_release(fetch->samples, fetch->op.done);
    rp_sample_fetch_release(fetch);
    return true;
}

static void end_with(rp_sample_stream *stream, const rp_op *op)
{
    char text[sizeof timed_out + RP_ERROR_TEXT_BYTES + 4];

    if (op->status != RP_DEADLINE) {
        rp_task_finish(&stream->task, op->status, op->error.text);
        return;
    }
    (void)snprintf(text, sizeof text, "%s %s", timed_out, op->error.text);
    rp_task_finish(&stream->task, RP_DEADLINE, text);
}

/* A fetch has completed: sends its samples. Takes ownership of the fetch. False if the fetch
 * has to be repeated when there is room. */
static bool settle(rp_sample_stream *stream, rp_sample_fetch *fetch)
{
    rp_table_counters *counters =
        rp_table_metrics_loop(fetch->served->metrics, fetch->worker->index);
    int64_t took_ns = rp_now_ns() - fetch->started_ns;
    size_t count = fetch->op.done, lacked = count == 0 ? fetch->op.lacked_bytes : 0;

    stream->lacked_bytes = lacked;
    if (fetch->op.status != RP_OK || count == 0) {
        if (fetch->op.status != RP_OK && lacked == 0) end_with(stream, &fetch->op);
        rp_samples_release(fetch->samples, count);
        rp_sample_fetch_release(fetch);
        if (lacked > 0) rp_connection_wait_for_room(stream->task.connection, lacked);
        return lacked == 0;
    }
    rp_histogram_record(&counters->sample_ns, took_ns, count);
    assert(stream->remaining >= (int64_t)count);
    stream->remaining -= (int64_t)count;
    stream->next_fetch = 2 * count;
    stream->has_sampled = true;
    assert(stream->arrived == NULL && stream->fetch == NULL); /* S1 */
    stream->arrived = fetch;
    (void)write_arrived(stream);
    return true;
}

/* The number of samples of the next fetch: as many as Reverb would fetch, if there is room. */
static size_t fetch_size(const rp_sample_stream *stream)
{
    size_t bytes = atomic_load_explicit(&stream->served->sample_bytes, memory_order_relaxed);
    size_t fetch_bytes = stream->lease != NULL ? SHARED_FETCH_BYTES : FETCH_BYTES;
    size_t most = bytes > 0 ? fetch_bytes / bytes + 1 : FIRST_FETCH;
    size_t count = stream->next_fetch,
           room = rp_connection_room(stream->task.connection, RP_QUEUE_OUT);

    if (room < fetch_bytes) most = room / expected_bytes(stream) + 1;

    if (count > most) count = most;
    if (count > RP_MAX_FETCH) count = RP_MAX_FETCH;
    return (int64_t)count < stream->remaining ? count : (size_t)stream->remaining;
}

/* Starts a fetch. True if it has completed; false if it waits, or has to be repeated later. */
static bool fetch_some(rp_sample_stream *stream)
{
    rp_task *task = &stream->task;
    rp_worker *worker = rp_task_worker(task);
    size_t count = fetch_size(stream);
    rp_sample_fetch *fetch = rp_sample_fetch_new(worker, count);

    if (fetch == NULL) {
        rp_task_abort(task, RP_NO_RESOURCE, "out of memory for samples");
        return true;
    }
    fetch->post.run = on_fetch_posted;
    fetch->timer = (rp_timer){.on_due = on_fetch_due, .is_bulk = true};
    fetch->stream = stream;
    fetch->written = fetch->written_bytes = fetch->given_bytes = 0;
    fetch->served = rp_served_table_ref(stream->served);
    fetch->started_ns = rp_now_ns();
    fetch->drawn = rp_drawn_ref(task->connection->drawn);
    fetch->options = (rp_sample_options){.count = count, .at_least = 1};
    fetch->op = (rp_op){
        .options = &fetch->options,
        .samples = fetch->samples,
        .room = &fetch->drawn->room,
        .until_ns = stream->timeout_ns == 0  ? RP_NOW
                    : stream->timeout_ns < 0 ? RP_FOREVER
                                             : fetch->started_ns + stream->timeout_ns,
        .on_done = on_fetch_done,
        .user = fetch,
        .client = task->connection->client.id,
    };
    rp_connection_update_drawn(task->connection);
    if (rp_table_start_sample(stream->served->table, &fetch->op)) return settle(stream, fetch);
    worker->outstanding++; /* S3 */
    stream->fetch = fetch;
    if (stream->timeout_ns > 0 && rp_loop_arm(worker->loop, &fetch->timer,
                                              fetch->started_ns + stream->timeout_ns) != RP_OK)
        rp_task_abort(task, RP_NO_RESOURCE, "out of memory for a deadline");
    return false;
}

/* Whether all samples of the request have been written. */
static bool is_done(const rp_sample_stream *stream)
{
    return stream->remaining == 0 && stream->arrived == NULL;
}

/* Fetches until the request is done, a fetch has to wait, the reader is slow, or the turn of
 * the loop has done enough work. */
static void pump(rp_sample_stream *stream)
{
    rp_task *task = &stream->task;
    size_t limit = rp_task_worker(task)->limits.stream_queued_bytes;

    if (stream->is_pumping || task->is_deferred) return;
    stream->is_pumping = true;
    while (write_arrived(stream) && stream->remaining > 0 && stream->fetch == NULL &&
           !task->is_finished && rp_call_queued_bytes(task->call) < limit &&
           has_room(stream, expected_bytes(stream)) && may_work(stream))
        if (!fetch_some(stream)) break;
    if (!is_done(stream) && stream->fetch == NULL && !task->is_finished && !task->is_deferred)
        rp_call_want_room(task->call);
    stream->is_pumping = false;
}

/* Continues to fetch after an event. When the request is done, resumes the stream for the next
 * one. */
static void continue_stream(rp_sample_stream *stream)
{
    rp_task *task = &stream->task;

    pump(stream);
    if (is_done(stream) && !task->is_finished) rp_call_resume(task->call);
}

/* A fetch that waited in the table has completed. */
static void complete(rp_sample_stream *stream, rp_sample_fetch *fetch)
{
    rp_worker *worker = fetch->worker;

    assert(stream == NULL || stream->fetch == fetch); /* S1 */
    if (stream == NULL) {
        rp_samples_release(fetch->samples, fetch->op.done);
        rp_sample_fetch_release(fetch);
    } else {
        stream->fetch = NULL;
        if (settle(stream, fetch))
            continue_stream(stream);
        else
            rp_call_want_room(stream->task.call);
        rp_connection_touch(stream->task.connection);
    }
    rp_worker_returned(worker);
}

static void on_fetch_posted(rp_post *post)
{
    rp_sample_fetch *fetch =
        (rp_sample_fetch *)((char *)post - offsetof(rp_sample_fetch, post));

    complete(fetch->stream, fetch);
}

static void on_fetch_due(rp_timer *timer)
{
    rp_sample_fetch *fetch =
        (rp_sample_fetch *)((char *)timer - offsetof(rp_sample_fetch, timer));

    if (rp_op_withdraw(&fetch->op, RP_DEADLINE)) complete(fetch->stream, fetch);
}

/* Finds the lease that a request names. */
static bool take_lease(rp_sample_stream *stream, const rp_wire_sample_request *request)
{
    rp_server *server = rp_task_worker(&stream->task)->server;
    const rp_string *id = &request->lease;

    if (stream->task.method != RP_METHOD_SAMPLE_SHARED) return true;
    if (stream->lease == NULL) {
        stream->lease = rp_leases_find(&server->leases, id->data, id->size);
        if (stream->lease != NULL)
            stream->lease_call = rp_lease_begin_call(stream->lease, request->lease_call);
    }
    if (stream->lease_call != NULL && id->size == RP_LEASE_ID_BYTES &&
        memcmp(rp_lease_id(stream->lease), id->data, id->size) == 0)
        return true;
    rp_task_finish(&stream->task, RP_PRECONDITION, "there is no such lease");
    return false;
}

static void on_message(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    rp_sample_stream *stream = stream_of(task);
    rp_wire_sample_request request;
    rp_error error;

    (void)block;
    if (rp_wire_read_sample_request(data, size, &request, &error) != RP_OK) {
        rp_task_refuse(task, RP_REFUSED_DECODE, &error);
        return;
    }
    if (request.num_samples < 1 || request.num_samples > INT32_MAX) {
        (void)rp_fail(&error, RP_INVALID, "num_samples must be from 1 to %d, got %lld",
                      INT32_MAX, (long long)request.num_samples);
        rp_task_refuse(task, RP_REFUSED_DECODE, &error);
        return;
    }
    if (!take_lease(stream, &request)) return;
    if (!rp_served_table_is(stream->served, request.table) ||
        rp_served_table_is_dropped(stream->served)) {
        rp_served_table *served =
            rp_served_table_find(rp_task_worker(task)->server, request.table, &error);
        if (served == NULL) {
            rp_task_finish(task, error.code, error.text);
            return;
        }
        rp_served_table_unref(stream->served);
        stream->served = served;
    }
    stream->message_bytes = request.num_samples > LONG_REQUEST ? FIRST_BYTES : RESPONSE_BYTES;
    stream->remaining = request.num_samples;
    stream->next_fetch = stream->has_sampled ? 2 * FIRST_FETCH : FIRST_FETCH;
    stream->lacked_bytes = 0;
    stream->is_new = true;
    stream->timeout_ns = -1;
    if (request.has_timeout && request.timeout_ms >= 0)
        stream->timeout_ns =
            request.timeout_ms < INT64_MAX / 4000000 ? request.timeout_ms * 1000000 : -1;
    pump(stream);
    if (!is_done(stream) && !task->is_finished) rp_call_pause(task->call);
}

static void on_room(rp_task *task)
{
    continue_stream(stream_of(task));
}

/* The turn of a stream that was deferred, with a request in progress or before its message. */
static void on_turn(rp_task *task)
{
    if (is_done(stream_of(task)))
        rp_call_resume(task->call);
    else
        continue_stream(stream_of(task));
}

static void on_half_close(rp_task *task)
{
    rp_task_finish(task, RP_OK, NULL);
}

/* A request in progress keeps its reference: it ends soon, as the table is closed. */
static void on_dropped(rp_task *task)
{
    rp_sample_stream *stream = stream_of(task);

    if (!is_done(stream) || !rp_served_table_is_dropped(stream->served)) return;
    rp_served_table_unref(stream->served);
    stream->served = NULL;
}

/* Withdraws a fetch that waits: nothing is drawn for a call that has ended. */
static void on_end(rp_task *task)
{
    rp_sample_stream *stream = stream_of(task);
    rp_sample_fetch *fetch = stream->fetch;

    if (fetch == NULL) return;
    stream->fetch = NULL;
    fetch->stream = NULL;
    rp_loop_disarm(fetch->worker->loop, &fetch->timer);
    if (!rp_op_withdraw(&fetch->op, RP_CANCELLED)) return; /* its post follows */
    rp_samples_release(fetch->samples, fetch->op.done);
    assert(fetch->worker->outstanding > 0); /* S3 */
    fetch->worker->outstanding--;
    rp_sample_fetch_release(fetch);
}

static void on_close(rp_task *task)
{
    on_end(task);
    (void)write_arrived(stream_of(task)); /* releases the samples, as the call has ended */
    rp_served_table_unref(stream_of(task)->served);
    if (stream_of(task)->lease_call != NULL)
        rp_lease_end_call(stream_of(task)->lease, stream_of(task)->lease_call);
    rp_lease_unref(stream_of(task)->lease);
}

const rp_task_kind rp_sample_stream_kind = {
    .bytes = sizeof(rp_sample_stream),
    .waits_for_room = true,
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_room = on_room,
    .on_turn = on_turn,
    .on_dropped = on_dropped,
    .on_end = on_end,
    .on_close = on_close,
};

const rp_task_kind rp_sample_shared_kind = {
    .bytes = sizeof(rp_sample_stream),
    .waits_for_room = true,
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_room = on_room,
    .on_turn = on_turn,
    .on_dropped = on_dropped,
    .on_end = on_end,
    .on_close = on_close,
};
