/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/deferral.h"

#include <assert.h>

#include "server/core/connection_room.h"
#include "util/mem.h"

enum {
    TURN_VISITS = 16,        /* calls that visit every table, in one turn */
    VISIT_BYTES = 256 << 10, /* bytes of responses that count as one more visit */
    KEPT_BYTES =
        4096, /* of a message that is deferred; a larger one is in proportion to its work */
};

/* Counts one call that visits every table. False: this turn may run no more of them. */
static bool may_visit(rp_worker *worker)
{
    if (worker->visits >= TURN_VISITS) return false;
    worker->visits++;
    return true;
}

/* Appends a connection to the queue (F2). */
static void enqueue(rp_connection *c)
{
    rp_worker *worker = c->worker;

    c->prev_deferring = worker->deferring_last;
    c->next_deferring = NULL;
    *(worker->deferring_last != NULL ? &worker->deferring_last->next_deferring
                                     : &worker->deferring) = c;
    worker->deferring_last = c;
}

static void dequeue(rp_connection *c)
{
    rp_worker *worker = c->worker;

    *(c->prev_deferring != NULL ? &c->prev_deferring->next_deferring : &worker->deferring) =
        c->next_deferring;
    *(c->next_deferring != NULL ? &c->next_deferring->prev_deferring
                                : &worker->deferring_last) = c->prev_deferring;
}

static void append(rp_connection *c, rp_task *task)
{
    assert((c->deferred == NULL) == (c->deferred_last == NULL));
    if (c->deferred == NULL) enqueue(c);
    task->prev_deferred = c->deferred_last;
    task->next_deferred = NULL;
    *(c->deferred_last != NULL ? &c->deferred_last->next_deferred : &c->deferred) = task;
    c->deferred_last = task;
}

void rp_defer_forget(rp_task *task)
{
    rp_connection *c = task->connection;

    if (task->deferred == NULL) return;
    assert(task->prev_deferred != NULL ? task->prev_deferred->next_deferred == task
                                       : c->deferred == task); /* F1 */
    *(task->prev_deferred != NULL ? &task->prev_deferred->next_deferred : &c->deferred) =
        task->next_deferred;
    *(task->next_deferred != NULL ? &task->next_deferred->prev_deferred : &c->deferred_last) =
        task->prev_deferred;
    rp_block_unref(task->deferred);
    task->deferred = NULL;
    if (c->deferred == NULL) dequeue(c);
}

/* Runs the first deferred call of the connection, which may end all of its calls. */
static void run_first(rp_connection *c)
{
    rp_task *task = c->deferred;
    rp_block *block = rp_block_ref(task->deferred);

    rp_defer_forget(task);
    if (c->deferred != NULL) { /* to the end of the queue */
        dequeue(c);
        enqueue(c);
    }
    if (!task->is_finished) task->kind->on_message(task, block->data, block->size, NULL);
    rp_block_unref(block);
}

static void on_due(rp_timer *timer)
{
    rp_worker *worker = (rp_worker *)((char *)timer - offsetof(rp_worker, deferral));

    /* Arms it for the next turn. Cannot fail: this timer has just left its place in the heap.
     */
    (void)!rp_loop_arm(worker->loop, timer, rp_loop_now(worker->loop));
    while (worker->deferring != NULL && may_visit(worker)) run_first(worker->deferring);
    if (worker->deferring == NULL) rp_loop_disarm(worker->loop, timer);
}

void rp_defer_message(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    rp_worker *worker = rp_task_worker(task);

    assert(task->kind->visits_tables && task->deferred == NULL);
    if (size > KEPT_BYTES || (worker->deferring == NULL && may_visit(worker))) {
        task->kind->on_message(task, data, size, block);
        return;
    }
    task->deferred = rp_block_new(&worker->server->alloc, size > 0 ? size : 1);
    if (task->deferred == NULL ||
        rp_loop_arm(worker->loop, &worker->deferral, rp_loop_now(worker->loop)) != RP_OK) {
        rp_block_unref(task->deferred);
        task->deferred = NULL;
        rp_task_abort(task, RP_NO_RESOURCE, "out of memory for a call that waits");
        return;
    }
    if (size > 0) memcpy(task->deferred->data, data, size);
    task->deferred->size = size;
    append(task->connection, task);
}

rp_message *rp_defer_reply(rp_task *task)
{
    rp_message *reply = rp_task_new_message(task);

    if (reply != NULL)
        reply->bytes.most = RP_GRPC_PREFIX + rp_connection_room(task->connection, RP_QUEUE_OUT);
    return reply;
}

void rp_defer_respond(rp_task *task, rp_message *reply)
{
    rp_connection *c = task->connection;

    assert(task->kind->visits_tables);
    c->worker->visits += reply->bytes.size / VISIT_BYTES;
    if (!reply->bytes.full && reply->bytes.size <= rp_connection_room(c, RP_QUEUE_OUT)) {
        rp_task_respond(task, reply);
        return;
    }
    rp_message_release(&c->worker->replies, reply);
    rp_connection_refused(c, RP_REFUSED_QUEUED);
    rp_task_abort(task, RP_NO_RESOURCE, RP_NO_ROOM_TEXT);
}

void rp_defer_init(rp_worker *worker)
{
    worker->deferral.on_due = on_due;
}

void rp_defer_end_turn(rp_worker *worker)
{
    worker->visits = 0;
}
