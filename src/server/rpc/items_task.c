/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rpc/items_task.h"

#include <assert.h>
#include <stdio.h>

#include "server/core/connection_room.h"
#include "server/core/deferral.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    STEP_BYTES = 2 << 20,     /* work of one turn: a few milliseconds at most */
    ROOM_AGAIN_NS = 50000000, /* between two tries to get room without on_room */
};

static void on_due(rp_timer *timer)
{
    rp_items_task *items = (rp_items_task *)((char *)timer - offsetof(rp_items_task, timer));

    if (!items->task.is_finished) items->due(items);
}

static bool wait_until(rp_items_task *items, int64_t due_ns, void (*due)(rp_items_task *),
                       bool is_bulk)
{
    rp_loop *loop = rp_task_worker(&items->task)->loop;

    rp_loop_disarm(loop, &items->timer);
    items->timer.on_due = on_due;
    items->timer.is_bulk = is_bulk;
    items->due = due;
    items->waits_for_room = false;
    if (rp_loop_arm(loop, &items->timer, due_ns) == RP_OK) return true;
    rp_task_abort(&items->task, RP_NO_RESOURCE, "out of memory for a timer");
    return false;
}

bool rp_items_wait(rp_items_task *items, int64_t due_ns, void (*due)(rp_items_task *))
{
    return wait_until(items, due_ns, due, true);
}

void rp_items_stop_waiting(rp_items_task *items)
{
    rp_loop_disarm(rp_task_worker(&items->task)->loop, &items->timer);
}

/* True if the task's connection has room for `bytes`. If not, `again` is called when there may
 * be room. */
static bool await_room(rp_items_task *items, size_t bytes, void (*again)(rp_items_task *))
{
    rp_loop *loop = rp_task_worker(&items->task)->loop;

    if (rp_connection_may_queue(items->task.connection, items->task.call, bytes)) return true;
    items->waits_for_room = rp_items_wait(items, rp_loop_now(loop) + ROOM_AGAIN_NS, again);
    return false;
}

/* Whether this turn of the loop may do work of `size` units; SIZE_MAX: much. If not, `later` is
 * called in one of the next turns. */
static bool may_work(rp_items_task *items, size_t size, void (*later)(rp_items_task *))
{
    bool may = rp_defer_may_begin(&items->task, size);

    items->turn = may ? NULL : later;
    return may;
}

static void try_to_begin(rp_items_task *items)
{
    size_t bytes = items->wanted_bytes;
    char text[RP_ERROR_TEXT_BYTES];

    if (items->until_ns != 0 && rp_now_ns() >= items->until_ns) {
        (void)snprintf(text, sizeof text,
                       "table '%.60s' timed out: queued_bytes, %zu, had no room for a sample "
                       "of %zu bytes; read answers faster, or raise the limit",
                       items->served->name, rp_task_worker(&items->task)->limits.queued_bytes,
                       bytes);
        rp_task_finish(&items->task, RP_DEADLINE, text);
        return;
    }
    if (bytes < RP_QUEUE_FLOOR_BYTES) bytes = RP_QUEUE_FLOOR_BYTES;
    if (!await_room(items, bytes, try_to_begin) || !may_work(items, items->work, try_to_begin))
        return;
    items->is_beginning = true;
    items->begin(items);
    items->is_beginning = false;
}

void rp_items_begin_again(rp_items_task *items, size_t bytes)
{
    rp_loop *loop = rp_task_worker(&items->task)->loop;

    items->wanted_bytes = bytes;
    rp_connection_wait_for_room(items->task.connection, bytes);
    items->waits_for_room =
        rp_items_wait(items, rp_loop_now(loop) + ROOM_AGAIN_NS, try_to_begin);
}

void rp_items_begin(rp_items_task *items, size_t work, void (*begin)(rp_items_task *))
{
    items->begin = begin;
    items->work = work;
    try_to_begin(items);
}

void rp_items_room(rp_task *task)
{
    rp_items_task *items = rp_items_of(task);

    if (items->timer.place == 0 || !items->waits_for_room) return;
    rp_items_stop_waiting(items);
    items->due(items);
}

bool rp_items_take_message(rp_items_task *items)
{
    if (!items->has_message) {
        items->has_message = true;
        return true;
    }
    rp_task_abort(&items->task, RP_INVALID, "the call has more than one request message");
    return false;
}

void rp_items_half_close(rp_task *task)
{
    if (!rp_items_of(task)->has_message)
        rp_task_finish(task, RP_INVALID, "the call ended without a request message");
}

void rp_items_hold(rp_items_task *items, rp_drawn *drawn, size_t held_bytes)
{
    assert(items->drawn == NULL && items->held_bytes == 0); /* I3 */
    items->drawn = rp_drawn_ref(drawn);
    items->held_bytes = held_bytes;
}

/* Makes the budget count `bytes` of the response that is being made, less held_bytes, which are
 * counted for its samples. */
static void count_made(rp_items_task *items, size_t bytes)
{
    rp_connection *c = items->task.connection;

    bytes = bytes > items->held_bytes ? bytes - items->held_bytes : 0;
    assert(c->making_bytes >= items->made_bytes); /* I2 */
    c->making_bytes += bytes - items->made_bytes;
    items->made_bytes = bytes;
    rp_connection_count(c);
}

static void release_all(rp_items_task *items)
{
    rp_worker *worker = rp_task_worker(&items->task);

    if (items->is_responding) rp_items_response_deinit(&items->response);
    items->is_responding = false;
    assert(items->task.connection->makers >= (size_t)items->is_making); /* I1 */
    items->task.connection->makers -= items->is_making;
    items->is_making = false;
    count_made(items, 0); /* also counts the response, which may have been sent */
    rp_message_release(&worker->replies, items->reply);
    items->reply = NULL;
    rp_sample_array_deinit(&items->room, worker, items->count);
    assert(items->drawn != NULL || items->held_bytes == 0); /* I3 */
    if (items->drawn != NULL) rp_drawn_give(items->drawn, items->held_bytes);
    rp_drawn_unref(items->drawn);
    items->drawn = NULL;
    items->held_bytes = 0;
}

/* A response that is too large is refused; damaged data is an error of the server. */
static void fail(rp_items_task *items, const rp_error *error)
{
    if (error->code == RP_NO_RESOURCE)
        rp_task_refuse(&items->task, RP_REFUSED_MESSAGE_BYTES, error);
    else
        rp_task_abort(&items->task, error->code, error->text);
}

static void count_sent(rp_items_task *items)
{
    rp_table_counters *counters =
        rp_table_metrics_loop(items->served->metrics, rp_task_worker(&items->task)->index);

    if (items->task.method != RP_METHOD_SAMPLE) return;
    rp_counter_add(&counters->sampled_items, items->count);
    rp_counter_add(&counters->sampled_bytes, rp_items_response_bytes(&items->response));
}

static void step_again(rp_items_task *items);

static void step(rp_items_task *items)
{
    rp_worker *worker = rp_task_worker(&items->task);
    rp_connection *c = items->task.connection;
    rp_error error = {0};
    bool done = false;
    rp_status st;

    assert(items->is_responding && items->reply != NULL); /* I4 */
    st = rp_items_response_step(&items->response, STEP_BYTES, &done, &error);
    rp_defer_add_work(worker, rp_items_response_work(&items->response) / RP_UNIT_BYTES);
    if (st != RP_OK) {
        fail(items, &error);
        release_all(items);
        return;
    }
    count_made(items, rp_items_response_bytes(&items->response));
    if (done) {
        rp_message *reply = items->reply;
        count_sent(items);
        items->reply = NULL;
        rp_task_respond(&items->task, reply);
        release_all(items);
    } else {
        c->makers += !items->is_making;
        items->is_making = true;
        /* Not a bulk timer: only one call of a connection makes its response at a time. */
        (void)wait_until(items, rp_loop_now(worker->loop), step_again, false);
    }
}

/* Makes a further step, unless this turn of the loop has done enough work. */
static void step_again(rp_items_task *items)
{
    if (may_work(items, SIZE_MAX, step)) step(items);
}

void rp_items_turn(rp_task *task)
{
    rp_items_task *items = rp_items_of(task);
    void (*turn)(rp_items_task *) = items->turn;

    items->turn = NULL;
    if (turn != NULL) turn(items);
    if (!task->is_finished) rp_call_resume(task->call); /* a message that waits is refused */
}

/* A draw stops before its items pass message_bytes, but has one item at least. A single larger
 * item is sent, since it would be lost otherwise. */
static size_t max_bytes(const rp_items_task *items)
{
    size_t bytes = rp_task_worker(&items->task)->limits.message_bytes;

    return items->task.method == RP_METHOD_SAMPLE && bytes < UINT32_MAX / 2 ? UINT32_MAX / 2
                                                                            : bytes;
}

static void begin_response(rp_items_task *items)
{
    rp_worker *worker = rp_task_worker(&items->task);
    const rp_items_material material = {
        .samples = items->room.samples,
        .count = items->count,
        .table = items->served->name,
        .with_chunks = items->with_chunks,
        .cut_rows = items->cut_rows,
        .max_bytes = max_bytes(items),
        .max_cut_bytes = worker->limits.tensor_bytes,
    };

    if (!await_room(items, 0, begin_response)) return;
    items->reply = rp_task_new_message(&items->task);
    if (items->reply == NULL) return;
    rp_items_response_init(&items->response, &worker->server->alloc, worker->server->hash_seed,
                           &material, items->reply);
    items->is_responding = true;
    if ((items->is_beginning && !items->cut_rows) ||
        may_work(items, items->cut_rows ? SIZE_MAX : items->count, step))
        step(items);
}

void rp_items_respond(rp_items_task *items, size_t count)
{
    assert(count <= items->room.count);
    items->count = count;
    begin_response(items);
}

void rp_items_close(rp_items_task *items)
{
    rp_items_stop_waiting(items);
    release_all(items);
    rp_served_table_unref(items->served);
}
