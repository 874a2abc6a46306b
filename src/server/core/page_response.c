/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/page_response.h"

#include <assert.h>
#include <stdio.h>

#include "reprise/version.h"
#include "server/core/connection_room.h"
#include "server/core/pinned.h"
#include "server/core/task.h"
#include "util/clock.h"
#include "util/mem.h"

static void describe(void *ctx, rp_server_view *view)
{
    rp_server *server = ctx;

    *view = (rp_server_view){
        .version = RP_VERSION,
        .uptime_ns = rp_now_ns() - server->started_ns,
        .addresses = server->acceptor.addresses,
        .address_count = server->acceptor.listener_count,
        .pinned_bytes = rp_pinned_sum(server),
        .metrics = server->metrics,
    };
    /* Acquire: pairs with rp_server_set_health(), so that the loaded store is visible. */
    if (atomic_load_explicit(&server->is_loaded, memory_order_acquire)) {
        view->store = server->store;
        view->is_durable = server->safety.durable != NULL;
    }
    if (view->is_durable) rp_durable_get_info(server->safety.durable, &view->durable);
    rp_mutex_lock(&server->lock);
    view->health = server->health;
    (void)snprintf(view->why, sizeof view->why, "%s", server->health_why);
    view->limits = server->limits;
    view->tls = server->tls != NULL;
    rp_mutex_unlock(&server->lock);
    view->open = server->is_open;
    if (view->health != RP_HEALTH_SERVING || !view->durable.degraded) return;
    view->health = RP_HEALTH_DEGRADED;
    (void)snprintf(view->why, sizeof view->why, "%.*s", RP_VIEW_WHY_BYTES - 1,
                   view->durable.trouble);
}

rp_page_host rp_page_host_of(rp_server *server)
{
    return (rp_page_host){
        .ctx = server,
        .describe = describe,
        .gate = server->gate,
        .is_open = server->is_open,
        .names = server->page_hosts,
        .counters = rp_metrics_shared(server->metrics),
    };
}

static const rp_http_response unavailable = {503, "text/plain", "retry-after", "1"};

static void refuse(rp_connection *c, rp_call *call, rp_refusal why)
{
    rp_connection_refused(c, why);
    rp_call_respond_http(call, &unavailable, NULL);
}

/* Sends a page; takes `body`, which may be NULL. */
static void send_page(rp_connection *c, rp_call *call, const rp_page_response *answer,
                      rp_message *body)
{
    if (body != NULL && body->bytes.size - RP_GRPC_PREFIX + body->borrowed >
                            rp_connection_room(c, RP_QUEUE_OUT)) {
        rp_connection_refused(c, RP_REFUSED_QUEUED);
        rp_message_release(&c->worker->replies, body);
        body = NULL;
    } else if (body != NULL && !rp_message_close(body)) {
        rp_message_release(&c->worker->replies, body);
        body = NULL;
    }
    rp_call_respond_http(call,
                         &(rp_http_response){body != NULL ? answer->status : 503,
                                             answer->content_type, answer->extra_name,
                                             answer->extra_value},
                         body);
    rp_connection_count(c);
    rp_connection_touch(c);
}

typedef struct page_task page_task;

/* A request for a page. It may outlive the call. */
typedef struct page_wait {
    rp_page_wait wait;
    rp_post post;
    rp_worker *worker;
    page_task *task; /* NULL: the call is over */
    rp_made_page *made;
    bool head_only;
} page_wait;

struct page_task {
    rp_task task;
    page_wait *wait; /* NULL: it does not wait */
};

static void give_back_page(void *made)
{
    rp_made_page_unref(made);
}

/* Responds with a finished page, without copying it. All of its bytes count for the connection.
 * Takes the reference. */
static void respond_made(rp_task *task, rp_made_page *made, bool head_only)
{
    const rp_buf *page = &made->answer.body;
    rp_message *body = NULL;
    rp_refusal why;

    /* Many calls may have requested the page while there was room. */
    if (rp_connection_is_full(task->connection, &why)) {
        refuse(task->connection, task->call, why);
    } else {
        body = rp_message_new(&rp_task_worker(task)->replies);
        if (body != NULL && !head_only && rp_message_add(body, page->data, page->size))
            rp_reply_keep(body, rp_made_page_ref(made), give_back_page);
        send_page(task->connection, task->call, &made->answer, body);
    }
    rp_made_page_unref(made);
    rp_task_finish(task, RP_OK, NULL);
}

/* On the worker's thread. */
static void on_arrived(rp_post *post)
{
    page_wait *w = (page_wait *)(void *)((char *)post - offsetof(page_wait, post));
    rp_worker *worker = w->worker;
    rp_task *task = w->task != NULL ? &w->task->task : NULL;
    rp_made_page *made = w->made;
    bool head_only = w->head_only;

    if (w->task != NULL) w->task->wait = NULL;
    rp_release(&worker->server->alloc, w, sizeof *w);
    if (task == NULL || task->is_finished)
        rp_made_page_unref(made);
    else if (made != NULL)
        respond_made(task, made, head_only);
    else
        rp_task_finish(task, RP_UNAVAILABLE, NULL);
    rp_worker_returned(worker);
}

/* On the maker's thread. */
static void on_made(rp_page_wait *wait, rp_made_page *made)
{
    page_wait *w = (page_wait *)(void *)wait;

    w->made = made;
    rp_loop_post(w->worker->loop, &w->post);
}

/* Requests a page about all tables for a call. */
static void await_page(rp_task *task, rp_page_kind kind, bool head_only)
{
    rp_worker *worker = rp_task_worker(task);
    page_wait *w = rp_alloc_zero(&worker->server->alloc, sizeof *w);
    rp_http_page *page;

    if (w == NULL) {
        rp_connection_refused(task->connection, RP_REFUSED_MEMORY);
        rp_task_finish(task, RP_NO_RESOURCE, NULL);
        return;
    }
    *w = (page_wait){
        .wait = {.on_made = on_made},
        .post = {.run = on_arrived},
        .worker = worker,
        .task = (page_task *)(void *)task,
        .head_only = head_only,
    };
    w->task->wait = w;
    worker->outstanding++;
    page = worker->server->page;
    if (page != NULL && rp_page_maker_ask(rp_http_page_maker(page), kind, &w->wait)) return;
    on_made(&w->wait, NULL); /* the server of a fuzz target has no pages */
}

static void on_message(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    (void)task, (void)data, (void)size, (void)block; /* a request for a page has no body */
}

static void on_half_close(rp_task *task)
{
    (void)task;
}

/* If the call ends before its page is made, responds with an HTTP status, not one of gRPC. Does
 * nothing after a response. */
static void on_end(rp_task *task)
{
    rp_call_respond_http(task->call, &unavailable, NULL);
}

static void on_close(rp_task *task)
{
    page_wait *w = ((page_task *)(void *)task)->wait;

    if (w != NULL) w->task = NULL;
}

static const rp_task_kind page_task_kind = {
    .bytes = sizeof(page_task),
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_end = on_end,
    .on_close = on_close,
};

void rp_page_respond(rp_connection *c, rp_call *call, bool head_only, const char *path,
                     const char *authorization)
{
    rp_worker *worker = c->worker;
    rp_page_host host = rp_page_host_of(worker->server);
    const rp_page_request request = {
        .method = head_only ? "HEAD" : "GET",
        .path = path,
        .shown = {authorization, c->certificate, c->peer},
        .now_ns = rp_loop_now(worker->loop),
    };
    rp_page_response answer = {0};
    rp_page_kind kind;
    rp_refusal why;

    if (rp_connection_is_full(c, &why)) {
        refuse(c, call, why);
        return;
    }
    rp_buf_init(&answer.body, &worker->server->alloc);
    if (rp_page_respond_now(&host, &request, &answer, &kind)) {
        rp_message *body = rp_message_new(&worker->replies);

        assert(answer.status >= 200 && answer.status < 600 && answer.content_type != NULL);
        if (body != NULL && !head_only)
            rp_buf_append(&body->bytes, answer.body.data, answer.body.size);
        send_page(c, call, &answer, body);
    } else {
        rp_task *task = rp_task_new(c, call, RP_METHOD_UNKNOWN, &page_task_kind);

        if (task != NULL)
            await_page(task, kind, head_only);
        else
            refuse(c, call, RP_REFUSED_MEMORY);
    }
    rp_buf_deinit(&answer.body);
}
