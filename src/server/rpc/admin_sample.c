/* SPDX-License-Identifier: Apache-2.0 */
/* Sample: one batch of items, drawn at once or as soon as the table allows.
 *
 * Invariants:
 *   D1  a draw that waits in the table is counted in worker->outstanding;
 *   D2  held_bytes is what the draw has taken from `drawn`, while its operation runs. */
#include <assert.h>

#include "server/bounds/limits.h"
#include "server/core/connection_room.h"
#include "server/core/deferral.h"
#include "server/core/worker.h"
#include "server/rpc/items_task.h"
#include "server/rpc/methods.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/admin_messages.h"

/* A batch that is being drawn. It may outlive its call. */
typedef struct draw draw;

enum { CHECK_NS = 500000000 /* between checks of a draw that waits */ };

typedef struct sample_task {
    rp_items_task items;
    rp_sample_options options;
    int64_t timeout_ns; /* -1: none */
    int64_t due_ns;     /* when it ends; 0: it has not begun */
    draw *draw;         /* the draw that waits in the table, or NULL */
} sample_task;

struct draw {
    rp_op op;
    rp_draw_room room;        /* of the op: `drawn`, up to max_bytes */
    rp_drawn *drawn;          /* a reference */
    atomic_size_t held_bytes; /* D2 */
    size_t max_bytes;         /* to take for all items, unless one item alone has more */
    rp_sample_options options;
    rp_post post;
    rp_worker *worker;
    sample_task *task;       /* NULL: its call has ended */
    rp_served_table *served; /* a reference */
    rp_sample_array array;
    int64_t started_ns;
};

static sample_task *sample_of(rp_task *task)
{
    return (sample_task *)(void *)task;
}

static void on_posted(rp_post *post);

static draw *draw_of(const rp_draw_room *room)
{
    return (draw *)(void *)((const char *)room - offsetof(draw, room));
}

/* An operation never calls `take` and `give` at the same time. Only on_check() may read
 * held_bytes while they run. */
static size_t take(rp_draw_room *room, size_t least, size_t most)
{
    draw *d = draw_of(room);
    size_t held = atomic_load_explicit(&d->held_bytes, memory_order_relaxed), left, got;

    left = held < d->max_bytes ? d->max_bytes - held : 0;
    if (left < least && held > 0) return 0;
    if (left < least) left = least;
    got = rp_drawn_take(d->drawn, held, least, most < left ? most : left);
    atomic_store_explicit(&d->held_bytes, held + got, memory_order_relaxed);
    return got;
}

static void give(rp_draw_room *room, size_t bytes)
{
    draw *d = draw_of(room);
    size_t before;

    rp_drawn_untake(d->drawn, bytes);
    before = atomic_fetch_sub_explicit(&d->held_bytes, bytes, memory_order_relaxed);
    assert(before >= bytes); /* D2 */
    (void)before;
}

static size_t left(const rp_draw_room *room)
{
    const draw *d = draw_of(room);
    size_t held = atomic_load_explicit(&d->held_bytes, memory_order_relaxed);
    size_t mine = held < d->max_bytes ? d->max_bytes - held : 0;
    size_t all = rp_drawn_left(d->drawn, held);

    return mine < all ? mine : all;
}

/* Makes a draw. If there is no memory, ends the call and returns NULL. */
static draw *new_draw(sample_task *task)
{
    rp_worker *worker = rp_task_worker(&task->items.task);
    draw *d = rp_alloc_zero(&worker->server->alloc, sizeof *d);
    rp_refusal why = RP_REFUSED_MEMORY;
    rp_error error;

    if (d == NULL) {
        (void)rp_fail_memory(&error, sizeof *d);
        rp_task_refuse(&task->items.task, why, &error);
        return NULL;
    }
    if (rp_sample_array_init(&d->array, worker, task->options.count, false, &why, &error) !=
        RP_OK) {
        rp_release(&worker->server->alloc, d, sizeof *d);
        rp_task_refuse(&task->items.task, why, &error);
        return NULL;
    }
    if (task->options.count > d->array.count) task->options.count = d->array.count;
    if (task->options.at_least > task->options.count)
        task->options.at_least = task->options.count;
    d->room = (rp_draw_room){.take = take, .give = give, .left = left};
    d->drawn = rp_drawn_ref(task->items.task.connection->drawn);
    d->max_bytes = worker->limits.message_bytes;
    d->options = task->options;
    d->worker = worker;
    d->task = task;
    d->served = rp_served_table_ref(task->items.served);
    d->post.run = on_posted;
    return d;
}

/* Frees a draw, with the samples unless they were moved to the task. */
static void free_draw(draw *d)
{
    rp_sample_array_deinit(&d->array, d->worker, d->op.done);
    rp_drawn_give(d->drawn, d->op.held_bytes);
    rp_drawn_unref(d->drawn);
    rp_served_table_unref(d->served);
    rp_release(&d->worker->server->alloc, d, sizeof *d);
}

static void on_done(rp_op *op)
{
    draw *d = op->user;

    rp_loop_post(d->worker->loop, &d->post);
}

/* A draw has completed: responds with its samples. Takes the draw. */
static void settle(sample_task *task, draw *d)
{
    rp_items_task *items = &task->items;
    rp_table_counters *counters = rp_table_metrics_loop(d->served->metrics, d->worker->index);
    int64_t took_ns = rp_now_ns() - d->started_ns;
    size_t lacked = d->op.status == RP_NO_RESOURCE ? d->op.lacked_bytes : 0;

    if (d->op.status != RP_OK && lacked == 0) {
        rp_task_finish(&items->task, d->op.status, d->op.error.text);
    } else if (lacked == 0 && !items->task.is_finished) {
        rp_histogram_record(&counters->sample_ns, took_ns, d->op.done);
        items->room = d->array;
        d->array = (rp_sample_array){0};
        rp_items_hold(items, d->drawn, d->op.held_bytes);
        d->op.held_bytes = 0;
        rp_items_respond(items, d->op.done);
    }
    free_draw(d);
    if (lacked > 0 && !items->task.is_finished) rp_items_begin_again(items, lacked);
}

/* A draw that waited in the table has completed. */
static void complete(draw *d)
{
    rp_worker *worker = d->worker;
    sample_task *task = d->task;

    assert(task == NULL || task->draw == d);
    if (task == NULL) {
        free_draw(d);
    } else {
        task->draw = NULL;
        rp_items_stop_waiting(&task->items);
        settle(task, d);
    }
    rp_worker_returned(worker);
}

static void on_posted(rp_post *post)
{
    complete((draw *)((char *)post - offsetof(draw, post)));
}

/* The time until which the draw may wait: the time in the request, or the deadline of the
 * call. */
static int64_t deadline_of(sample_task *task, int64_t now_ns)
{
    const rp_timer *call = &task->items.task.deadline;
    int64_t until_ns = call->due_ns > 0 ? call->due_ns : RP_FOREVER;

    if (task->timeout_ns == 0) return RP_NOW;
    if (task->due_ns == 0)
        task->due_ns = task->timeout_ns > 0 && task->timeout_ns < until_ns - now_ns
                           ? now_ns + task->timeout_ns
                           : until_ns;
    if (task->timeout_ns > 0) task->items.until_ns = task->due_ns;
    return task->due_ns > now_ns ? task->due_ns : now_ns + 1; /* must not be RP_NOW */
}

static void arm_check(sample_task *task);

/* Ends a draw whose time is up, or which holds room that others need. The response has the
 * items that were drawn by then. */
static void on_check(rp_items_task *items)
{
    sample_task *task = sample_of(&items->task);
    rp_worker *worker = rp_task_worker(&items->task);
    draw *d = task->draw;
    size_t limit = rp_server_limits_side_bytes(&worker->limits);
    bool is_late = task->timeout_ns > 0 && rp_now_ns() >= task->due_ns;

    if (!is_late && (atomic_load_explicit(&d->held_bytes, memory_order_relaxed) == 0 ||
                     rp_queue_bytes(&worker->queue, RP_QUEUE_OUT) < limit / 2)) {
        arm_check(task);
    } else if (rp_op_withdraw(&d->op, is_late ? RP_DEADLINE : RP_CANCELLED)) {
        if (!is_late &&
            d->op.status == RP_CANCELLED) { /* nothing was drawn: begins the wait again */
            d->op.status = RP_NO_RESOURCE;
            d->op.lacked_bytes = 1;
        }
        complete(d);
    }
}

/* Arms the timer that calls on_check() for a draw that waits. */
static void arm_check(sample_task *task)
{
    int64_t due_ns = rp_now_ns() + CHECK_NS;

    if (task->timeout_ns > 0 && task->due_ns < due_ns) due_ns = task->due_ns;
    (void)rp_items_wait(&task->items, due_ns, on_check);
}

static void begin(rp_items_task *items)
{
    sample_task *task = sample_of(&items->task);
    draw *d = new_draw(task);

    if (d == NULL) return;
    assert(task->draw == NULL);
    d->started_ns = rp_now_ns();
    d->op = (rp_op){
        .options = &d->options,
        .samples = d->array.samples,
        .room = &d->room,
        .until_ns = deadline_of(task, d->started_ns),
        .on_done = on_done,
        .user = d,
        .client = items->task.connection->client.id,
    };
    rp_connection_update_drawn(items->task.connection);
    if (rp_table_start_sample(items->served->table, &d->op)) {
        rp_defer_add_work(d->worker, d->op.done);
        settle(task, d);
        return;
    }
    d->worker->outstanding++; /* D1 */
    task->draw = d;
    arm_check(task);
}

/* Checks the fields that the table does not check. A distinct batch is drawn while one lock is
 * held, so it has a limit of its own. */
static rp_status check(const rp_wire_draw_request *request, const rp_server_limits *limits,
                       rp_refusal *why, rp_error *err)
{
    *why = RP_REFUSED_DECODE;
    if (request->count < 1)
        return rp_fail(err, RP_INVALID, "count must be >= 1, got %lld",
                       (long long)request->count);
    if ((uint64_t)request->count > limits->keys) {
        *why = RP_REFUSED_KEYS;
        return rp_fail(err, RP_NO_RESOURCE, "count must be <= %zu, the limit keys, got %lld",
                       limits->keys, (long long)request->count);
    }
    if (request->distinct && (uint64_t)request->count > limits->distinct_samples) {
        *why = RP_REFUSED_DISTINCT_SAMPLES;
        return rp_fail(err, RP_NO_RESOURCE,
                       "count of a distinct batch must be <= %zu, the limit distinct_samples, "
                       "got %lld; ask for fewer, or raise the limit",
                       limits->distinct_samples, (long long)request->count);
    }
    if (request->at_least < 0 || request->at_least > request->count)
        return rp_fail(err, RP_INVALID, "at_least must be from 0 to count, %lld, got %lld",
                       (long long)request->count, (long long)request->at_least);
    return RP_OK;
}

static void on_message(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    enum { NS_PER_MS = 1000000 };
    sample_task *sample = sample_of(task);
    rp_items_task *items = &sample->items;
    rp_wire_draw_request request;
    rp_refusal why;
    rp_error error;

    (void)block;
    if (!rp_items_take_message(items)) return;
    if (rp_wire_read_draw(data, size, &request, &error) != RP_OK) {
        rp_task_refuse(task, RP_REFUSED_DECODE, &error);
        return;
    }
    if (check(&request, &rp_task_worker(task)->limits, &why, &error) != RP_OK) {
        rp_task_refuse(task, why, &error);
        return;
    }
    items->served = rp_served_table_of(task, request.table);
    if (items->served == NULL) return;
    items->with_chunks = true;
    items->cut_rows = request.cut_rows;
    sample->options = (rp_sample_options){
        .count = (size_t)request.count,
        .at_least = (size_t)request.at_least,
        .distinct = request.distinct,
        .beta = request.beta,
    };
    sample->timeout_ns = -1;
    if (request.has_timeout && request.timeout_ms >= 0 &&
        request.timeout_ms < INT64_MAX / (4 * NS_PER_MS))
        sample->timeout_ns = request.timeout_ms * NS_PER_MS;
    rp_items_begin(items, sample->options.count, begin);
}

static void on_close(rp_task *task)
{
    sample_task *sample = sample_of(task);
    draw *d = sample->draw;

    if (d != NULL) {
        d->task = NULL;
        if (rp_op_withdraw(&d->op, RP_CANCELLED)) {
            assert(d->worker->outstanding > 0); /* D1 */
            d->worker->outstanding--;
            free_draw(d);
        }
    }
    rp_items_close(&sample->items);
}

const rp_task_kind rp_sample_kind = {
    .bytes = sizeof(sample_task),
    .on_message = on_message,
    .on_half_close = rp_items_half_close,
    .on_close = on_close,
    .on_turn = rp_items_turn,
    .on_room = rp_items_room,
};
