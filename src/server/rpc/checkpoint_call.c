/* SPDX-License-Identifier: Apache-2.0 */
/* The Checkpoint call: requests a checkpoint, and responds with its path when it is written.
 * core/checkpoint_queue.h has the rules.
 *
 * Invariants, under the server's lock:
 *   Y1  `running` is not empty only while is_busy;
 *   Y2  a request is in one of the lists, or its post is in the queue of its worker's loop. */
#include <assert.h>
#include <stdio.h>

#include "server/bounds/expiry.h"
#include "server/core/task.h"
#include "server/core/worker.h"
#include "server/rpc/methods.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/fields.h"
#include "wire/reverb_messages.h"

enum {
    BURST = 6, /* checkpoints that may follow each other at once */
    PATH_BYTES = 4096,
};

/* A Checkpoint call that waits. It belongs to its worker, which counts it in `outstanding`. The
 * thread that ends the checkpoint writes the results here, and then posts the struct to the
 * worker. */
struct rp_checkpoint_call {
    rp_post post;
    rp_checkpoint_call *next;
    rp_worker *worker;
    rp_task *task; /* NULL: the call has ended. Used by the worker's thread only */
    rp_status status;
    char path[PATH_BYTES];
    char text[RP_ERROR_TEXT_BYTES];
};

typedef struct checkpoint_task {
    rp_task task;
    rp_checkpoint_call *request; /* set while the task waits */
} checkpoint_task;

static checkpoint_task *call_of(rp_task *task)
{
    return (checkpoint_task *)(void *)task;
}

static rp_server *server_of(rp_checkpoint_queue *queue)
{
    return (rp_server *)(void *)((char *)queue - offsetof(rp_server, checkpoints));
}

static void post_locked(rp_server *server) RP_REQUIRES(server->lock)
{
    if (server->checkpoints.is_posted) return;
    server->checkpoints.is_posted = true;
    rp_loop_post(server->workers[0].loop, &server->checkpoints.post);
}

/* Posts the result to all requests of a list. Any thread. */
static void deliver(rp_checkpoint_call *list, rp_status status, const char *path,
                    const char *text)
{
    while (list != NULL) {
        rp_checkpoint_call *next = list->next;

        list->status = status;
        (void)snprintf(list->path, sizeof list->path, "%s", path != NULL ? path : "");
        (void)snprintf(list->text, sizeof list->text, "%s", text != NULL ? text : "");
        rp_loop_post(list->worker->loop, &list->post); /* the worker may free it now */
        list = next;
    }
}

/* A checkpoint has been written, or has failed. Called on a thread of the durable. */
static void on_written(void *ctx, rp_status status, const char *path, const char *text)
{
    rp_server *server = ctx;
    rp_checkpoint_call *list;

    rp_mutex_lock(&server->lock);
    assert(server->checkpoints.is_busy); /* Y1 */
    list = server->checkpoints.running;
    server->checkpoints.running = NULL;
    server->checkpoints.is_busy = false;
    if (server->checkpoints.waiting != NULL) post_locked(server);
    rp_mutex_unlock(&server->lock);
    deliver(list, status, path, text);
}

static rp_bucket_rate spacing_of(const rp_server_limits *limits)
{
    int64_t token_ns = limits->checkpoint_spacing_ms * 1000000;

    return (rp_bucket_rate){token_ns, BURST * token_ns};
}

bool rp_checkpoint_queue_spend(rp_server *server, int64_t now_ns)
{
    rp_bucket_rate rate;
    bool can;

    rp_mutex_lock(&server->lock);
    rate = spacing_of(&server->limits);
    can = rp_bucket_spend(&server->checkpoints.bucket, &rate, now_ns);
    rp_mutex_unlock(&server->lock);
    return can;
}

/* Moves the waiting requests to `running` if a checkpoint may begin now. If not, `*due_ns`
 * receives the time when it may, or 0 if it may begin only after another event. */
static bool take_waiting(rp_server *server, int64_t now_ns, int64_t *due_ns)
{
    rp_checkpoint_queue *queue = &server->checkpoints;
    rp_bucket_rate rate;
    bool begins = false;

    *due_ns = 0;
    rp_mutex_lock(&server->lock);
    queue->is_posted = false;
    assert(queue->is_busy || queue->running == NULL); /* Y1 */
    rate = spacing_of(&server->limits);
    if (!queue->is_busy && queue->waiting != NULL) {
        begins = rp_bucket_spend(&queue->bucket, &rate, now_ns);
        if (!begins) *due_ns = queue->bucket.full_at_ns - (rate.burst_ns - rate.token_ns);
    }
    if (begins) {
        queue->is_busy = true;
        queue->running = queue->waiting;
        queue->waiting = NULL;
    }
    rp_mutex_unlock(&server->lock);
    return begins;
}

static void refuse_waiting(rp_server *server, const char *why)
{
    rp_checkpoint_call *list;

    rp_mutex_lock(&server->lock);
    list = server->checkpoints.waiting;
    server->checkpoints.waiting = NULL;
    rp_mutex_unlock(&server->lock);
    deliver(list, RP_NO_RESOURCE, NULL, why);
}

static void begin(rp_server *server)
{
    rp_loop *loop = server->workers[0].loop;
    rp_error error = {0};
    int64_t due_ns;

    if (!take_waiting(server, rp_loop_now(loop), &due_ns)) {
        if (due_ns > 0 && rp_loop_arm(loop, &server->checkpoints.timer, due_ns) != RP_OK)
            refuse_waiting(server, "out of memory for a timer");
        return;
    }
    if (rp_durable_start_checkpoint(server->safety.durable, on_written, server, &error) !=
        RP_OK)
        on_written(server, error.code, NULL, error.text);
}

static void on_post(rp_post *post)
{
    begin(server_of(
        (rp_checkpoint_queue *)(void *)((char *)post - offsetof(rp_checkpoint_queue, post))));
}

static void on_due(rp_timer *timer)
{
    begin(server_of(
        (rp_checkpoint_queue *)(void *)((char *)timer - offsetof(rp_checkpoint_queue, timer))));
}

void rp_checkpoint_queue_init(rp_checkpoint_queue *queue)
{
    queue->post.run = on_post;
    queue->timer.on_due = on_due;
}

static void respond(rp_task *task, const rp_checkpoint_call *request)
{
    rp_message *reply;

    if (request->status != RP_OK) {
        rp_task_finish(task, request->status, request->text);
        return;
    }
    reply = rp_task_new_message(task);
    if (reply == NULL) return;
    rp_wire_write_checkpoint_response(&reply->bytes, request->path);
    rp_task_respond(task, reply);
}

static void free_request(rp_checkpoint_call *request)
{
    rp_release(&request->worker->server->alloc, request, sizeof *request);
}

/* On the worker's thread. */
static void on_delivered(rp_post *post)
{
    rp_checkpoint_call *request =
        (rp_checkpoint_call *)(void *)((char *)post - offsetof(rp_checkpoint_call, post));
    rp_worker *worker = request->worker;

    if (request->task != NULL) {
        assert(call_of(request->task)->request == request);
        call_of(request->task)->request = NULL;
        respond(request->task, request);
    }
    free_request(request);
    rp_worker_returned(worker);
}

/* Ends a call that waits a little before its deadline, so that the client gets the reason
 * before it gives up. */
static void hurry(rp_task *task)
{
    rp_loop *loop = rp_task_worker(task)->loop;
    int64_t now_ns = rp_loop_now(loop), left_ns = task->deadline.due_ns - now_ns;

    if (task->expiry_ns == INT64_MAX) return; /* no deadline */
    /* The timer is armed: a change of its time succeeds. */
    (void)!rp_loop_arm(loop, &task->deadline, rp_expiry_ns(now_ns, left_ns > 0 ? left_ns : 0));
}

static void enqueue(rp_task *task)
{
    rp_worker *worker = rp_task_worker(task);
    rp_server *server = worker->server;
    rp_checkpoint_call *request = rp_alloc_zero(&server->alloc, sizeof *request);

    if (request == NULL) {
        rp_task_finish(task, RP_NO_RESOURCE, "out of memory for a checkpoint");
        return;
    }
    request->post.run = on_delivered;
    request->worker = worker;
    request->task = task;
    call_of(task)->request = request;
    worker->outstanding++;
    hurry(task);
    rp_mutex_lock(&server->lock);
    request->next = server->checkpoints.waiting;
    server->checkpoints.waiting = request;
    post_locked(server);
    rp_mutex_unlock(&server->lock);
}

static void on_checkpoint(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    (void)block;
    if (!rp_task_is_message(task, data, size)) return;
    if (call_of(task)->request != NULL)
        rp_task_abort(task, RP_INVALID, "the call has more than one request message");
    else if (rp_task_worker(task)->server->safety.durable == NULL)
        rp_task_finish(
            task, RP_INVALID,
            "no checkpointer is configured for this server: start it with --data DIR, or "
            "with storage= in Python");
    else
        enqueue(task);
}

static void on_half_close(rp_task *task)
{
    if (call_of(task)->request == NULL)
        rp_task_finish(task, RP_INVALID, "the call ended without a request message");
}

static void on_late(rp_task *task, rp_error *why)
{
    rp_server *server = rp_task_worker(task)->server;
    const rp_checkpoint_call *waits;
    bool is_busy;

    rp_mutex_lock(&server->lock);
    is_busy = server->checkpoints.is_busy;
    waits = server->checkpoints.waiting;
    while (waits != NULL && waits != call_of(task)->request) waits = waits->next;
    rp_mutex_unlock(&server->lock);
    if (call_of(task)->request == NULL) return;
    (void)snprintf(why->text, sizeof why->text, "%s",
                   waits == NULL ? "no checkpoint in time: it is still being written"
                   : is_busy     ? "no checkpoint in time: another is still being written"
                                 : "no checkpoint in time: requested checkpoints follow each "
                                   "other at most every checkpoint_spacing_ms");
}

/* Removes a request that waits for the next checkpoint. A request that shares the running
 * checkpoint gets its result later, and has no task then. */
static void on_end(rp_task *task)
{
    rp_checkpoint_call *request = call_of(task)->request, **link;
    rp_server *server = rp_task_worker(task)->server;
    bool is_removed;

    if (request == NULL) return;
    call_of(task)->request = NULL;
    request->task = NULL;
    rp_mutex_lock(&server->lock);
    link = &server->checkpoints.waiting;
    while (*link != NULL && *link != request) link = &(*link)->next;
    is_removed = *link == request;
    if (is_removed) *link = request->next;
    rp_mutex_unlock(&server->lock);
    if (!is_removed) return;
    free_request(request);
    assert(rp_task_worker(task)->outstanding > 0); /* V4 */
    rp_task_worker(task)->outstanding--;
}

const rp_task_kind rp_checkpoint_kind = {
    .bytes = sizeof(checkpoint_task),
    .on_message = on_checkpoint,
    .on_half_close = on_half_close,
    .on_late = on_late,
    .on_end = on_end,
    .on_close = on_end,
};
