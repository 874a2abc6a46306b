/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoint: has one written, and answers with its path. */
#include <stdio.h>

#include "server/core/inside.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/fields.h"
#include "wire/reverb_calls.h"

enum {
    BURST = 6, /* checkpoints that may follow each other at once */
    PATH_BYTES = 4096,
};

/* A call that waits. It belongs to its worker, which counts it among what will come home; its
 * results are written by whoever ends the checkpoint, before the post. */
struct rp_checkpoint_call {
    rp_post post;
    rp_checkpoint_call *next;
    rp_worker *worker;
    rp_task *task; /* NULL: the call is gone. The worker's thread */
    rp_status status;
    char path[PATH_BYTES];
    char text[RP_ERROR_TEXT_BYTES];
};

typedef struct checkpoint_task {
    rp_task task;
    rp_checkpoint_call *request; /* while it waits */
} checkpoint_task;

static checkpoint_task *call_of(rp_task *task)
{
    return (checkpoint_task *)(void *)task;
}

static rp_server *server_of(rp_checkpoint_desk *desk)
{
    return (rp_server *)(void *)((char *)desk - offsetof(rp_server, desk));
}

static void nudge_locked(rp_server *server) RP_REQUIRES(server->lock)
{
    if (server->desk.is_nudged) return;
    server->desk.is_nudged = true;
    rp_loop_post(server->workers[0].loop, &server->desk.nudge);
}

/* Sends those who share a checkpoint home. Any thread. */
static void deliver(rp_server *server, rp_checkpoint_call *list, rp_status status,
                    const char *path, const char *text)
{
    (void)server;
    while (list != NULL) {
        rp_checkpoint_call *next = list->next;

        list->status = status;
        (void)snprintf(list->path, sizeof list->path, "%s", path != NULL ? path : "");
        (void)snprintf(list->text, sizeof list->text, "%s", text != NULL ? text : "");
        rp_loop_post(list->worker->loop, &list->post); /* from here on it is the worker's */
        list = next;
    }
}

/* On a thread of the durable's. */
static void on_written(void *ctx, rp_status status, const char *path, const char *text)
{
    rp_server *server = ctx;
    rp_checkpoint_call *list;

    rp_mutex_lock(&server->lock);
    list = server->desk.running;
    server->desk.running = NULL;
    server->desk.is_busy = false;
    if (server->desk.waiting != NULL) nudge_locked(server);
    rp_mutex_unlock(&server->lock);
    deliver(server, list, status, path, text);
}

static rp_bucket_rate spacing_of(const rp_server_limits *limits)
{
    int64_t token_ns = limits->checkpoint_spacing_ms * 1000000;

    return (rp_bucket_rate){token_ns, BURST * token_ns};
}

/* Takes those who wait, if a checkpoint may begin now; otherwise `*due_ns` is when, or 0. */
static bool take_waiting(rp_server *server, int64_t now_ns, int64_t *due_ns)
{
    rp_checkpoint_desk *desk = &server->desk;
    rp_bucket_rate rate;
    bool begins = false;

    *due_ns = 0;
    rp_mutex_lock(&server->lock);
    desk->is_nudged = false;
    rate = spacing_of(&server->limits);
    if (!desk->is_busy && desk->waiting != NULL) {
        begins = rp_bucket_spend(&desk->bucket, &rate, now_ns);
        if (!begins) *due_ns = desk->bucket.full_at_ns - (rate.burst_ns - rate.token_ns);
    }
    if (begins) {
        desk->is_busy = true;
        desk->running = desk->waiting;
        desk->waiting = NULL;
    }
    rp_mutex_unlock(&server->lock);
    return begins;
}

static void refuse_waiting(rp_server *server, const char *why)
{
    rp_checkpoint_call *list;

    rp_mutex_lock(&server->lock);
    list = server->desk.waiting;
    server->desk.waiting = NULL;
    rp_mutex_unlock(&server->lock);
    deliver(server, list, RP_NO_RESOURCE, NULL, why);
}

static void begin(rp_server *server)
{
    rp_loop *loop = server->workers[0].loop;
    rp_error error = {0};
    int64_t due_ns;

    if (!take_waiting(server, rp_loop_now(loop), &due_ns)) {
        if (due_ns > 0 && rp_loop_arm(loop, &server->desk.timer, due_ns) != RP_OK)
            refuse_waiting(server, "out of memory for a timer");
        return;
    }
    if (rp_durable_start_checkpoint(server->safety.durable, on_written, server, &error) !=
        RP_OK)
        on_written(server, error.code, NULL, error.text);
}

static void on_nudged(rp_post *post)
{
    begin(server_of(
        (rp_checkpoint_desk *)(void *)((char *)post - offsetof(rp_checkpoint_desk, nudge))));
}

static void on_due(rp_timer *timer)
{
    begin(server_of(
        (rp_checkpoint_desk *)(void *)((char *)timer - offsetof(rp_checkpoint_desk, timer))));
}

void rp_checkpoint_desk_init(rp_checkpoint_desk *desk)
{
    desk->nudge.run = on_nudged;
    desk->timer.on_due = on_due;
}

static void answer(rp_task *task, const rp_checkpoint_call *request)
{
    rp_reply *reply;

    if (request->status != RP_OK) {
        rp_task_finish(task, request->status, request->text);
        return;
    }
    reply = rp_task_reply(task);
    if (reply == NULL) return;
    rp_wire_write_checkpoint_response(&reply->bytes, request->path);
    rp_task_answer(task, reply);
}

static void free_request(rp_checkpoint_call *request)
{
    rp_release(&request->worker->server->alloc, request, sizeof *request);
}

static void on_home(rp_post *post)
{
    rp_checkpoint_call *request =
        (rp_checkpoint_call *)(void *)((char *)post - offsetof(rp_checkpoint_call, post));
    rp_worker *worker = request->worker;

    if (request->task != NULL) {
        call_of(request->task)->request = NULL;
        answer(request->task, request);
    }
    free_request(request);
    rp_worker_returned(worker);
}

static void ask(rp_task *task)
{
    rp_worker *worker = rp_task_worker(task);
    rp_server *server = worker->server;
    rp_checkpoint_call *request = rp_alloc_zero(&server->alloc, sizeof *request);

    if (request == NULL) {
        rp_task_finish(task, RP_NO_RESOURCE, "out of memory for a checkpoint");
        return;
    }
    request->post.run = on_home;
    request->worker = worker;
    request->task = task;
    call_of(task)->request = request;
    worker->outstanding++;
    rp_mutex_lock(&server->lock);
    request->next = server->desk.waiting;
    server->desk.waiting = request;
    nudge_locked(server);
    rp_mutex_unlock(&server->lock);
}

static void on_checkpoint(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    (void)block;
    if (!rp_task_is_message(task, data, size)) return;
    if (call_of(task)->request != NULL)
        rp_task_abort(task, RP_INVALID, "the call has more than one request message");
    else if (rp_task_worker(task)->server->safety.durable == NULL)
        rp_task_finish(task, RP_INVALID, "no checkpointer is configured for this server");
    else
        ask(task);
}

static void on_half_close(rp_task *task)
{
    if (call_of(task)->request == NULL)
        rp_task_finish(task, RP_INVALID, "the call ended without a request message");
}

/* Whoever has not been taken into a checkpoint yet is taken back; others come home. */
static void on_end(rp_task *task)
{
    rp_checkpoint_call *request = call_of(task)->request, **link;
    rp_server *server = rp_task_worker(task)->server;
    bool is_taken_back;

    if (request == NULL) return;
    call_of(task)->request = NULL;
    request->task = NULL;
    rp_mutex_lock(&server->lock);
    link = &server->desk.waiting;
    while (*link != NULL && *link != request) link = &(*link)->next;
    is_taken_back = *link == request;
    if (is_taken_back) *link = request->next;
    rp_mutex_unlock(&server->lock);
    if (!is_taken_back) return;
    free_request(request);
    rp_task_worker(task)->outstanding--;
}

const rp_task_kind rp_checkpoint_kind = {
    .bytes = sizeof(checkpoint_task),
    .on_message = on_checkpoint,
    .on_half_close = on_half_close,
    .on_end = on_end,
    .on_close = on_end,
};
