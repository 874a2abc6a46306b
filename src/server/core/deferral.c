/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/deferral.h"

#include <assert.h>

#include "server/core/connection_room.h"

enum {
    SMALL_BYTES = 4096, /* a request of so many bytes does not wait for those of others */
    SMALL_TURN_WORK = 2 * RP_TURN_WORK, /* small requests may begin until then */
    VISIT_WORK = SMALL_TURN_WORK / RP_TURN_VISITS,
    VISIT_BYTES = 256 << 10, /* bytes of responses that count as one more visit */
    READ_WORK = RP_TURN_WORK - RP_TURN_WORK / 16, /* no large read begins beyond it: the rest is
                                                     for the messages of the last read */
    LARGE_READ_BYTES = 16 << 10,
    WARM_WORK = (16 << 10) / RP_UNIT_BYTES, /* a call with less has little to write */
};

/* Adds a connection at the end of the queue, or at its front (F2). */
static void enqueue(rp_connection *c, bool is_first)
{
    rp_worker *worker = c->worker;

    c->prev_deferring = is_first ? NULL : worker->deferring_last;
    c->next_deferring = is_first ? worker->deferring : NULL;
    *(c->prev_deferring != NULL ? &c->prev_deferring->next_deferring : &worker->deferring) = c;
    *(c->next_deferring != NULL ? &c->next_deferring->prev_deferring
                                : &worker->deferring_last) = c;
}

static void dequeue(rp_connection *c)
{
    rp_worker *worker = c->worker;

    *(c->prev_deferring != NULL ? &c->prev_deferring->next_deferring : &worker->deferring) =
        c->next_deferring;
    *(c->next_deferring != NULL ? &c->next_deferring->prev_deferring
                                : &worker->deferring_last) = c->prev_deferring;
}

/* Arms the timer, unless it is armed already (F3). False if there is no memory. */
static bool arm(rp_worker *worker)
{
    return worker->deferring != NULL || worker->unread != NULL ||
           rp_loop_arm(worker->loop, &worker->deferral, rp_loop_now(worker->loop)) == RP_OK;
}

/* Defers a task: at the end of the queue, or at its front. False if there is no memory. */
static bool defer(rp_task *task, bool is_first)
{
    rp_connection *c = task->connection;
    rp_worker *worker = c->worker;

    assert(!task->is_deferred && !task->is_finished);
    if (!arm(worker)) return false;
    assert((c->deferred == NULL) == (c->deferred_last == NULL));
    if (c->deferred != NULL && is_first) dequeue(c);
    if (c->deferred == NULL || is_first) enqueue(c, is_first);
    task->prev_deferred = is_first ? NULL : c->deferred_last;
    task->next_deferred = is_first ? c->deferred : NULL;
    *(task->prev_deferred != NULL ? &task->prev_deferred->next_deferred : &c->deferred) = task;
    *(task->next_deferred != NULL ? &task->next_deferred->prev_deferred : &c->deferred_last) =
        task;
    task->is_deferred = true;
    return true;
}

void rp_defer_forget(rp_task *task)
{
    rp_connection *c = task->connection;

    if (!task->is_deferred) return;
    assert(task->prev_deferred != NULL ? task->prev_deferred->next_deferred == task
                                       : c->deferred == task); /* F1 */
    *(task->prev_deferred != NULL ? &task->prev_deferred->next_deferred : &c->deferred) =
        task->next_deferred;
    *(task->next_deferred != NULL ? &task->next_deferred->prev_deferred : &c->deferred_last) =
        task->prev_deferred;
    task->is_deferred = false;
    if (c->deferred == NULL) dequeue(c);
}

/* Removes a connection from worker->unread (F4). */
static void leave_unread(rp_connection *c)
{
    rp_worker *worker = c->worker;

    assert(c->is_unread);
    *(c->prev_unread != NULL ? &c->prev_unread->next_unread : &worker->unread) = c->next_unread;
    *(c->next_unread != NULL ? &c->next_unread->prev_unread : &worker->unread_last) =
        c->prev_unread;
    c->is_unread = false;
}

void rp_defer_forget_all(rp_connection *c)
{
    while (c->deferred != NULL) rp_defer_forget(c->deferred);
    if (c->is_unread) leave_unread(c);
}

bool rp_defer_may_read(rp_connection *c)
{
    rp_worker *worker = c->worker;

    if (c->is_unread) return false;
    if (worker->unread == NULL && worker->work < READ_WORK) return true;
    if (rp_link_waiting(&c->link) <= LARGE_READ_BYTES || rp_connection_has_loan(c) ||
        !arm(worker))
        return true;
    c->prev_unread = worker->unread_last;
    c->next_unread = NULL;
    *(c->prev_unread != NULL ? &c->prev_unread->next_unread : &worker->unread) = c;
    worker->unread_last = c;
    c->is_unread = true;
    return false;
}

bool rp_defer_may_begin(rp_task *task, size_t size)
{
    rp_worker *worker = rp_task_worker(task);
    const rp_connection *c = task->connection;

    if (worker->turn_of == task && worker->work < worker->turn_end) return true;
    if (task->is_deferred) return false;
    /* A loan is for this moment (Q7), and a closed connection soon ends its calls. */
    if (c->loans[RP_QUEUE_OUT].is_made || c->state == RP_CONNECTION_CLOSED) return true;
    if (size <= SMALL_BYTES && c->deferred == NULL && c != worker->continued) {
        if (worker->work < SMALL_TURN_WORK) return true;
    } else if (worker->work < RP_TURN_WORK && worker->deferring == NULL) {
        return true;
    }
    return !defer(task, false); /* without memory it begins now */
}

bool rp_defer_may_go_on(rp_task *task)
{
    assert(task->kind->on_turn != NULL);
    return rp_task_worker(task)->work < RP_TURN_WORK || !defer(task, true);
}

void rp_defer_add_work(rp_worker *worker, size_t units)
{
    worker->work += units;
}

void rp_defer_begin_message(rp_worker *worker, size_t size)
{
    size_t units = 1 + size / RP_UNIT_BYTES;

    /* A message with more work than a turn has leaves the other half to small requests. */
    worker->work += units < RP_TURN_WORK ? units : RP_TURN_WORK;
}

void rp_defer_end_message(rp_worker *worker)
{
    worker->turn_of = NULL;
}

/* Continues the first deferred call, which may end all calls of its connection. */
static void continue_first(rp_worker *worker)
{
    rp_connection *c = worker->deferring;
    rp_task *task = c->deferred;
    size_t before = worker->work;

    assert(c->state != RP_CONNECTION_CLOSED);
    rp_defer_forget(task);
    if (c->deferred != NULL) { /* to the end of the queue */
        dequeue(c);
        enqueue(c, false);
    }
    if (task->is_finished) return;
    worker->turn_of = task;
    worker->turn_end = before + RP_TURN_SHARE;
    worker->continued = c;
    if (task->kind->on_turn != NULL)
        task->kind->on_turn(task);
    else
        rp_call_resume(task->call);
    worker->turn_of = NULL;
    worker->continued = NULL;
    rp_worker_flush_batches(worker);
    rp_connection_count(c);
    assert(c->state != RP_CONNECTION_CLOSED);
    if (worker->work - before >= WARM_WORK)
        worker->write(c);
    else
        rp_connection_touch(c);
}

/* Reads from the connection that has waited longest. */
static void read_first(rp_worker *worker)
{
    rp_connection *c = worker->unread;

    leave_unread(c);
    worker->read(c);
}

static void on_due(rp_timer *timer)
{
    rp_worker *worker = (rp_worker *)((char *)timer - offsetof(rp_worker, deferral));

    /* Arms it for the next turn. Cannot fail: this timer has just left its place in the heap.
     */
    (void)!rp_loop_arm(worker->loop, timer, rp_loop_now(worker->loop));
    if (worker->deferring != NULL) continue_first(worker);
    while (worker->deferring != NULL && worker->work < RP_TURN_WORK) continue_first(worker);
    if (worker->unread != NULL) read_first(worker);
    while (worker->unread != NULL && worker->deferring == NULL && worker->work < READ_WORK)
        read_first(worker);
    if (worker->deferring == NULL && worker->unread == NULL)
        rp_loop_disarm(worker->loop, timer);
}

rp_message *rp_defer_reply(rp_task *task)
{
    rp_message *reply = rp_task_new_message(task);

    rp_defer_add_work(rp_task_worker(task), VISIT_WORK);
    if (reply != NULL)
        reply->bytes.most = RP_GRPC_PREFIX + rp_connection_room(task->connection, RP_QUEUE_OUT);
    return reply;
}

void rp_defer_respond(rp_task *task, rp_message *reply)
{
    rp_connection *c = task->connection;

    rp_defer_add_work(c->worker, reply->bytes.size / VISIT_BYTES * VISIT_WORK);
    if (!reply->bytes.full && reply->bytes.size <= rp_connection_room(c, RP_QUEUE_OUT)) {
        rp_task_respond(task, reply);
        return;
    }
    rp_message_release(&c->worker->replies, reply);
    rp_connection_refused(c, RP_REFUSED_QUEUED);
    rp_task_abort(task, RP_NO_RESOURCE, RP_NO_ROOM_TEXT);
}

void rp_defer_init(rp_worker *worker, void (*read)(rp_connection *),
                   void (*write)(rp_connection *))
{
    worker->read = read;
    worker->write = write;
    worker->deferral.on_due = on_due;
}

void rp_defer_end_turn(rp_worker *worker)
{
    worker->work = 0;
}
