/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/task.h"

#include <assert.h>

#include "chunk/protobuf.h"
#include "server/core/connection_room.h"
#include "util/error.h"
#include "util/mem.h"

static void on_deadline(rp_timer *timer)
{
    rp_task *task = (rp_task *)((char *)timer - offsetof(rp_task, deadline));

    rp_error why = {.text = "Deadline Exceeded"};

    if (task->waits_for_journal)
        rp_safety_why_behind(&rp_task_worker(task)->server->safety, &why);
    else if (task->kind->on_late != NULL)
        task->kind->on_late(task, &why);
    rp_task_abort(task, RP_DEADLINE, why.text);
}

rp_task *rp_task_new(rp_connection *c, rp_call *call, rp_method method,
                     const rp_task_kind *kind)
{
    rp_worker *worker = c->worker;
    rp_task *task;

    assert(kind != NULL && kind->bytes >= sizeof(rp_task) && kind->on_message != NULL);
    task = rp_alloc_zero(&worker->server->alloc, kind->bytes);
    if (task == NULL) return NULL;
    task->kind = kind;
    task->connection = c;
    task->call = call;
    task->method = method;
    task->deadline = (rp_timer){.on_due = on_deadline, .is_bulk = true};
    task->expiry_ns = rp_expiry_ns(0, -1);
    task->next = c->tasks;
    if (task->next != NULL) task->next->prev = task;
    c->tasks = task;
    rp_counter_add(&worker->metrics->streams, 1);
    rp_counter_raise(&worker->metrics->streams_most, rp_counter_get(&worker->metrics->streams));
    rp_call_set_user(call, task);
    return task;
}

bool rp_task_begin(rp_connection *c, rp_call *call, rp_method method, rp_role role,
                   int64_t timeout_ns)
{
    const rp_task_kind *kind = rp_task_kinds[method];
    rp_worker *worker = c->worker;
    int64_t now_ns = rp_loop_now(worker->loop);
    rp_task *task = rp_task_new(c, call, method, kind);

    if (task == NULL) return false;
    task->role = role;
    task->expiry_ns = rp_expiry_ns(c->heard_ns, timeout_ns);
    if (timeout_ns >= 0 && timeout_ns < INT64_MAX - now_ns &&
        rp_loop_arm(worker->loop, &task->deadline, now_ns + timeout_ns) != RP_OK) {
        rp_task_finish(task, RP_NO_RESOURCE, "out of memory for a deadline");
        return true;
    }
    if (kind->on_open != NULL) kind->on_open(task);
    return true;
}

void rp_task_leave_room(rp_task *task)
{
    rp_worker *worker = rp_task_worker(task);

    if (!task->waits_for_journal) return;
    assert(worker->room_bytes >= task->room_bytes); /* R2 */
    rp_safe_wait_end(&worker->room_waits, &task->room);
    worker->room_bytes -= task->room_bytes;
    task->room_bytes = 0;
    task->waits_for_journal = false;
    rp_counter_sub(&worker->metrics->journal_waits, 1);
}

void rp_task_close(rp_task *task)
{
    rp_connection *c = task->connection;
    rp_worker *worker = c->worker;

    rp_loop_disarm(worker->loop, &task->deadline);
    rp_safe_wait_end(&worker->safe_waits, &task->safe);
    rp_task_leave_room(task);
    if (!task->is_finished) task->status = RP_CANCELLED;
    task->is_finished = true;
    if (task->kind->on_close != NULL) task->kind->on_close(task);
    assert(worker->batching != task); /* K4: on_close has started its batches */
    assert(!task->is_deferred);
    rp_message_release(&worker->replies, task->held);
    if (task->flushes) {
        assert(task->prev_flush != NULL || c->flushes == task); /* K2 */
        *(task->prev_flush != NULL ? &task->prev_flush->next_flush : &c->flushes) =
            task->next_flush;
        if (task->next_flush != NULL) task->next_flush->prev_flush = task->prev_flush;
    }
    assert(task->prev != NULL ? task->prev->next == task : c->tasks == task);
    *(task->prev != NULL ? &task->prev->next : &c->tasks) = task->next;
    if (task->next != NULL) task->next->prev = task->prev;
    if (task->method != RP_METHOD_UNKNOWN) /* requests for pages are not counted */
        rp_counter_add(&worker->metrics->calls[task->method][task->status], 1);
    rp_counter_sub(&worker->metrics->streams, 1);
    rp_release(&worker->server->alloc, task, task->kind->bytes);
}

void rp_task_ended(rp_task *task, rp_status status)
{
    assert(!task->is_finished);
    task->is_finished = true;
    task->status = status;
    rp_loop_disarm(rp_task_worker(task)->loop, &task->deadline);
    rp_safe_wait_end(&rp_task_worker(task)->safe_waits, &task->safe);
    rp_task_leave_room(task);
    if (task->kind->on_end != NULL) task->kind->on_end(task);
    rp_connection_touch(task->connection);
}

void rp_task_flush_all(rp_connection *c)
{
    while (c->flushes != NULL) {
        rp_task *task = c->flushes;
        assert(task->flushes && task->prev_flush == NULL); /* K2 */
        c->flushes = task->next_flush;
        if (c->flushes != NULL) c->flushes->prev_flush = NULL;
        task->flushes = false;
        task->kind->on_flush(task);
    }
}

bool rp_task_is_message(rp_task *task, const uint8_t *data, size_t size)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_field field;
    rp_pb_step step;
    rp_error error;

    while ((step = rp_pb_next(&reader, &field)) == RP_PB_FIELD) continue;
    if (step == RP_PB_END) return true;
    (void)rp_fail(&error, RP_INVALID, "malformed request");
    rp_task_refuse(task, RP_REFUSED_DECODE, &error);
    return false;
}

void rp_task_touch(rp_task *task)
{
    rp_connection *c = task->connection;

    assert(task->kind->on_flush != NULL);
    rp_connection_touch(c);
    if (task->flushes) return;
    task->flushes = true;
    task->prev_flush = NULL;
    task->next_flush = c->flushes;
    if (c->flushes != NULL) c->flushes->prev_flush = task;
    c->flushes = task;
}

void rp_task_finish(rp_task *task, rp_status status, const char *text)
{
    if (task->is_finished) return;
    rp_task_ended(task, status);
    rp_call_finish(task->call, status, text);
}

void rp_task_abort(rp_task *task, rp_status status, const char *text)
{
    if (task->is_finished) return;
    rp_task_ended(task, status);
    rp_call_abort(task->call, status, text);
}

void rp_task_refuse(rp_task *task, rp_refusal why, const rp_error *error)
{
    /* Bytes from a peer that contradict themselves are its mistake, not damaged storage. */
    rp_status status = error->code == RP_CORRUPT ? RP_INVALID : error->code;

    if (task->is_finished) return;
    rp_connection_refused(task->connection, why);
    rp_task_abort(task, status, error->text);
}

rp_message *rp_task_new_message(rp_task *task)
{
    rp_message *reply = rp_message_new(&rp_task_worker(task)->replies);

    if (reply == NULL) rp_task_abort(task, RP_NO_RESOURCE, "out of memory for a response");
    return reply;
}

void rp_task_send(rp_task *task, rp_message *reply)
{
    if (!rp_message_close(reply)) {
        rp_message_release(&rp_task_worker(task)->replies, reply);
        rp_task_abort(task, RP_NO_RESOURCE, "out of memory for a response");
        return;
    }
    rp_counter_add(&rp_task_worker(task)->metrics->messages_written, 1);
    rp_connection_add_work(task->connection, reply);
    rp_call_send(task->call, reply);
    rp_connection_count(task->connection);
    rp_connection_touch(task->connection);
}

void rp_task_respond(rp_task *task, rp_message *reply)
{
    rp_task_send(task, reply);
    rp_task_finish(task, RP_OK, NULL);
}

static void send_held(rp_safe_wait *wait)
{
    rp_task *task = (rp_task *)(void *)((char *)wait - offsetof(rp_task, safe));
    rp_message *reply = task->held;

    assert(reply != NULL && !task->is_finished); /* K1, K3 */
    task->held = NULL;
    rp_task_respond(task, reply);
}

void rp_task_respond_when_safe(rp_task *task, rp_message *reply, uint64_t lsn)
{
    rp_worker *worker = rp_task_worker(task);

    if (reply == NULL) reply = rp_task_new_message(task);
    if (reply == NULL) return;
    if (lsn <= rp_safe_now(&worker->server->safety)) {
        rp_task_respond(task, reply);
        return;
    }
    assert(task->held == NULL && !task->is_finished); /* K3 */
    task->held = reply;
    task->safe.on_safe = send_held;
    rp_safe_wait_begin(&worker->safe_waits, &task->safe, lsn);
}

void rp_task_respond_empty(rp_task *task)
{
    rp_message *reply = rp_task_new_message(task);

    if (reply != NULL) rp_task_respond(task, reply);
}
