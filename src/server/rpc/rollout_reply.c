/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rpc/rollout_reply.h"

#include <assert.h>

#include "rollouts/rollout_set.h"
#include "server/core/connection_room.h"
#include "server/core/deferral.h"
#include "server/core/pinned.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    STEP_BYTES = 1 << 20,     /* copied in one step */
    ROOM_AGAIN_NS = 50000000, /* between two tries to get room without on_room */
};

/* The groups that a message refers to. */
typedef struct kept_groups {
    rp_allocator alloc;
    rp_rollouts *rollouts; /* a reference */
    rp_rollout_batch *batch;
    const rp_message *message; /* that keeps them */
} kept_groups;

static void release_lease(rp_rollouts *rollouts, uint64_t lease)
{
    const rp_rollout_op op = {
        .kind = RP_ROLLOUT_RELEASE, .now_ns = rp_wall_ns(NULL), .lease = lease};
    rp_rollout_result result;

    /* If it fails, the lease expires. */
    (void)!rp_rollouts_apply(rollouts, &op, &result, NULL);
}

void rp_rollout_undraw(rp_rollouts *rollouts, rp_rollout_batch *batch)
{
    if (batch != NULL && batch->lease != 0) release_lease(rollouts, batch->lease);
    rp_rollout_batch_free(batch);
}

size_t rp_rollout_batch_fit(const rp_rollout_batch *batch, size_t most)
{
    rp_rollout_batch one = *batch;
    size_t left = most;

    if (rp_rollout_batch_measure(batch, most) <= most) return batch->count;
    one.count = 1;
    for (size_t i = 0; i < batch->count; i++) {
        size_t bytes;

        one.groups = batch->groups + i;
        bytes = rp_rollout_batch_measure(&one, left);
        if (bytes > left) return i;
        left -= bytes;
    }
    return batch->count;
}

/* The message is released. `left` counts the bytes that were written. */
static void give_back(void *kept)
{
    kept_groups *k = kept;
    bool is_written = k->message->size > 0 && k->message->left == k->message->size;
    rp_allocator alloc = k->alloc;

    if (!is_written && k->batch->lease != 0) release_lease(k->rollouts, k->batch->lease);
    rp_rollout_batch_free(k->batch);
    rp_rollouts_unref(k->rollouts);
    rp_release(&alloc, k, sizeof *k);
}

rp_rollouts *rp_rollouts_of(rp_task *task, rp_string name)
{
    rp_rollout_set *set = rp_store_rollouts(rp_task_worker(task)->server->store);
    rp_rollouts *found = rp_rollout_set_find(set, name);
    rp_error error;

    if (found != NULL) return found;
    rp_task_finish(task, rp_rollout_set_missing(set, name, &error), error.text);
    return NULL;
}

bool rp_rollout_take_message(rp_rollout_reply *reply)
{
    if (!reply->has_message) {
        reply->has_message = true;
        return true;
    }
    rp_task_abort(&reply->task, RP_INVALID, "the call has more than one request message");
    return false;
}

void rp_rollout_half_close(rp_task *task)
{
    rp_rollout_reply *reply = (rp_rollout_reply *)(void *)task;

    if (!reply->has_message)
        rp_task_finish(task, RP_INVALID, "the call ended without a request message");
}

/* Makes the budget count the bytes of the message that are copied so far. */
static void count_made(rp_rollout_reply *reply, size_t bytes)
{
    rp_connection *c = reply->task.connection;

    assert(c->making_bytes >= reply->made_bytes); /* P1 */
    c->making_bytes += bytes - reply->made_bytes;
    reply->made_bytes = bytes;
    rp_connection_count(c);
}

static void stop_making(rp_rollout_reply *reply)
{
    assert(reply->task.connection->makers >= (size_t)reply->is_making); /* P1 */
    reply->task.connection->makers -= reply->is_making;
    reply->is_making = false;
    if (reply->made_bytes > 0) count_made(reply, 0);
}

static void make(rp_rollout_reply *reply)
{
    rp_task *task = &reply->task;
    rp_worker *worker = rp_task_worker(task);
    rp_message *message = reply->message;
    size_t before;
    bool more;

    do {
        before = message->bytes.size;
        more = rp_rollout_batch_step(&reply->writer, STEP_BYTES);
        rp_defer_add_work(worker, (message->bytes.size - before) / RP_UNIT_BYTES);
        count_made(reply, message->bytes.size);
        task->connection->makers += more && !reply->is_making;
        reply->is_making = reply->is_making || more;
        if (more && !rp_defer_may_go_on(task)) return;
    } while (more);
    stop_making(reply);
    reply->message = NULL;
    rp_task_respond_when_safe(task, message, reply->lsn);
}

void rp_rollout_turn(rp_task *task)
{
    rp_rollout_reply *reply = (rp_rollout_reply *)(void *)task;

    if (reply->message != NULL && !reply->waits_for_room)
        make(reply);
    else if (!task->is_finished)
        rp_call_resume(task->call); /* its message was deferred, or is one too many */
}

/* Sets the bytes of a response that waits for room. */
static void count_waiting(rp_rollout_reply *reply, size_t bytes)
{
    rp_task *task = &reply->task;

    assert(task->connection->parked_bytes >= reply->waiting_bytes); /* P2 */
    task->connection->parked_bytes += bytes - reply->waiting_bytes;
    rp_pinned_add(rp_task_worker(task), bytes - reply->waiting_bytes);
    reply->waiting_bytes = bytes;
}

static void await_room(rp_rollout_reply *reply)
{
    rp_task *task = &reply->task;
    rp_connection *c = task->connection;
    rp_loop *loop = rp_task_worker(task)->loop;

    rp_loop_disarm(loop, &reply->timer);
    reply->waits_for_room = !rp_connection_may_queue(c, task->call, reply->bytes);
    count_waiting(reply, reply->waits_for_room ? reply->bytes : 0);
    if (!reply->waits_for_room)
        make(reply);
    else if (rp_pinned_is_full(c) ||
             c->parked_bytes > c->worker->limits.connection_pinned_bytes)
        rp_pinned_refuse(task);
    else if (rp_loop_arm(loop, &reply->timer, rp_loop_now(loop) + ROOM_AGAIN_NS) != RP_OK)
        rp_task_abort(task, RP_NO_RESOURCE, "out of memory for a timer");
}

static void on_due(rp_timer *timer)
{
    rp_rollout_reply *reply =
        (rp_rollout_reply *)(void *)((char *)timer - offsetof(rp_rollout_reply, timer));

    if (!reply->task.is_finished) await_room(reply);
}

void rp_rollout_room(rp_task *task)
{
    rp_rollout_reply *reply = (rp_rollout_reply *)(void *)task;

    if (reply->waits_for_room) await_room(reply);
}

/* Makes the message keep the groups. If there is no memory, frees them. */
static rp_status keep(rp_rollout_reply *reply, rp_rollouts *rollouts, rp_rollout_batch *batch)
{
    const rp_allocator *alloc = &rp_task_worker(&reply->task)->server->alloc;
    kept_groups *k = rp_alloc(alloc, sizeof *k);

    if (k == NULL) {
        rp_rollout_undraw(rollouts, batch);
        return RP_NO_RESOURCE;
    }
    *k = (kept_groups){*alloc, rp_rollouts_ref(rollouts), batch, reply->message};
    rp_reply_keep(reply->message, k, give_back);
    return RP_OK;
}

static void respond_groups(rp_rollout_reply *reply, rp_rollouts *rollouts,
                           rp_rollout_batch *batch)
{
    rp_task *task = &reply->task;
    size_t most = rp_task_worker(task)->limits.message_bytes;
    rp_error error;

    if (keep(reply, rollouts, batch) != RP_OK) {
        rp_task_abort(task, RP_NO_RESOURCE, "out of memory for a response");
        return;
    }
    reply->bytes = rp_rollout_batch_measure(batch, most);
    if (reply->bytes > most) {
        (void)rp_fail(&error, RP_NO_RESOURCE,
                      "%zu group%s more than message_bytes, %zu: %sraise the limit",
                      batch->count, batch->count == 1 ? " takes" : "s take", most,
                      batch->count == 1 ? "" : "draw fewer groups, or ");
        rp_task_refuse(task, RP_REFUSED_MESSAGE_BYTES, &error);
        return;
    }
    reply->writer = (rp_rollout_batch_writer){.batch = batch, .message = reply->message};
    reply->timer.on_due = on_due;
    await_room(reply);
}

size_t rp_rollout_batch_work(const rp_rollout_batch *batch)
{
    return batch->count * (1 + batch->group_size);
}

void rp_rollout_respond(rp_rollout_reply *reply, rp_rollouts *rollouts,
                        const rp_rollout_result *result)
{
    rp_task *task = &reply->task;
    rp_message *message = rp_task_new_message(task);

    if (result->batch != NULL)
        rp_defer_add_work(rp_task_worker(task), rp_rollout_batch_work(result->batch));
    if (message == NULL) {
        rp_rollout_undraw(rollouts, result->batch);
        return;
    }
    reply->lsn = result->lsn;
    rp_rollout_result_write(&message->bytes, result);
    if (result->batch == NULL) {
        rp_task_respond_when_safe(task, message, result->lsn);
        return;
    }
    reply->message = message;
    respond_groups(reply, rollouts, result->batch);
}

void rp_rollout_reply_close(rp_rollout_reply *reply)
{
    rp_worker *worker = rp_task_worker(&reply->task);

    rp_loop_disarm(worker->loop, &reply->timer);
    reply->waits_for_room = false;
    count_waiting(reply, 0);
    stop_making(reply);
    rp_message_release(&worker->replies, reply->message);
    reply->message = NULL;
}
